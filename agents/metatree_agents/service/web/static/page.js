// What all pages do: colours, one-time codes in the address, keys that send a form, and searches that go on.

const root = document.documentElement;

// colours
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
function colours() {
  return root.dataset.theme ?? (dark.matches ? "dark" : "light");
}
function label() {
  const words = colours() === "dark" ? "Use light colours" : "Use dark colours";
  if (button.classList.contains("icon")) button.setAttribute("aria-label", words);
  else button.textContent = words;
}
if (button) {
  button.hidden = false;
  label();
  dark.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = colours() === "dark" ? "light" : "dark";
    try { localStorage.setItem("colours", root.dataset.theme); } catch { /* it holds for this page */ }
    label();
  });
}

// A menu closes with Escape, and when something else is pressed.
for (const menu of document.querySelectorAll("details.menu")) {
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}

// A one-time code comes behind the `#`, which no server sees; it leaves the address at once, and a person presses the button.
// A link that is pasted into the address of an open page loads nothing: the page hears of it by `hashchange`.
const code = document.getElementById("code");
function takeCode() {
  const given = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!given) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (!code) return; // a page of somebody who is logged in
  code.value = given;
  document.getElementById("by-secret").hidden = true;
  const details = document.getElementById("by-code");
  details.open = true;
  details.querySelector("[data-brought]").hidden = false;
  details.querySelector("button").focus();
}
takeCode();
addEventListener("hashchange", takeCode);

// Ctrl+Enter or Cmd+Enter sends a question; what was sent is not sent twice.
for (const form of document.querySelectorAll("form[data-submit-by-keys]")) {
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// A question that was sent while the server was away is in its box again when its page is opened again: nothing else
// has it. Where it was taken, another page comes, or the same with one question more.
const asking = document.querySelector("form.ask[data-submit-by-keys]");
if (asking) {
  const box = asking.elements.question;
  const place = () => JSON.stringify([
    document.querySelector(".menu > summary")?.getAttribute("aria-label"),
    location.pathname,
    new URLSearchParams(location.search).get("topic"),
    document.querySelectorAll("article.question").length,
  ]);
  try {
    const [sentFrom, text] = JSON.parse(sessionStorage.getItem("question") ?? "[]");
    if (sentFrom === place()) box.value = text;
    sessionStorage.removeItem("question");
  } catch { /* nothing is kept */ }
  asking.addEventListener("submit", () => {
    try { sessionStorage.setItem("question", JSON.stringify([place(), box.value])); } catch { /* it is sent all the same */ }
  });
}

// What was found once may take a moment: a form that looks for something says that it does.
const looking = document.querySelectorAll("form[role=search]");
for (const form of looking) {
  form.addEventListener("submit", () => {
    form.setAttribute("aria-busy", "true");
    const told = document.getElementById("told");
    if (told) told.textContent = "Looking…";
  });
}
addEventListener("pageshow", () => {
  for (const form of looking) form.removeAttribute("aria-busy");
});

// What is shown can be copied: an answer as it was given, a secret. Browsers allow it on this machine, and where the page is encrypted.
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  const source = button && document.getElementById(button.dataset.copy);
  if (!source) return;
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(source.defaultValue ?? source.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied";
  }
  const told = document.getElementById("told");
  if (told) told.textContent = button.textContent;
  setTimeout(() => { button.textContent = name; }, 2_000);
});

// Lists of what goes on are brought up to date, while nobody is at work in them.
const listed = document.querySelector("[data-again]");
if (listed) {
  setInterval(async () => {
    const busy = () => document.hidden || !getSelection().isCollapsed || listed.contains(document.activeElement);
    if (busy()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
      const made = answer.ok && parsed.querySelector("[data-again]");
      if (made && !busy()) listed.replaceChildren(...document.adoptNode(made).childNodes);
    } catch { /* nobody answered: it is tried again */ }
  }, 1_000 * listed.dataset.again);
}

// Whoever deletes a topic leaves its page, and is not to be told that it is gone.
let leaving = false;
addEventListener("submit", () => { leaving = true; });

// Searches that go on: one at a time, as engines answer the questions of a topic in order.
const told = document.getElementById("told");

// What a page of a search cannot do anything about by trying again, and what a person can.
const final = {
  401: "You are logged out: load the page again to log in.",
  403: "You may not see this search any more: go back to your topics.",
  404: "This search is gone: go back to your topics.",
};

async function fetched(path, given) {
  try {
    const answer = await fetch(`${path}?${new URLSearchParams(given)}`, { headers: { Accept: "text/html" } });
    if (!answer.ok) return { status: answer.status };
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    return { status: answer.status, made: document.adoptNode(parsed.body.firstElementChild) };
  } catch {
    return { status: 0 }; // nobody answered
  }
}

function watch(article) {
  const { topic, seq } = article.dataset;
  const now = article.querySelector("[data-now]");
  let { after } = article.dataset, seen = after, wanted = false, busy = false, events, tries = 0, text = "";

  function say(words) {
    now.textContent = words;
    if (told) told.textContent = words;
  }

  async function walk() {
    if (busy) { wanted = true; return; }
    busy = true;
    do {
      wanted = false;
      const { made } = await fetched("/thread/walk", { topic, seq, after: seen });
      const place = article.querySelector("[data-walk]");
      if (!made || !place.isConnected) break;
      // As it is now: somebody may have opened something, or gone on, while the walk was fetched.
      const opened = new Set([...place.querySelectorAll("details[open]")].map((each) => path(each, place)));
      const focused = place.contains(document.activeElement) ? path(document.activeElement, place) : null;
      seen = made.dataset.after;
      place.replaceWith(made);
      for (const each of made.querySelectorAll("details")) each.open = opened.has(path(each, made));
      if (focused) [...made.querySelectorAll("a, summary")].find((each) => path(each, made) === focused)?.focus();
      await new Promise((resolve) => setTimeout(resolve, 150));
    } while (wanted);
    busy = false;
  }

  async function replaced(words) {
    events.close();
    const { status, made } = await fetched("/thread/question", { topic, seq });
    if (made) show(made, words); else lost(status);
  }

  function show(made, words) {
    const within = article.contains(document.activeElement), { top } = article.getBoundingClientRect();
    article.replaceWith(made);
    if (within) made.focus({ preventScroll: true });
    scrollBy(0, made.getBoundingClientRect().top - top); // the question stays where it is read
    for (const button of made.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
    if (told) told.textContent = made.dataset.told ?? words;
    next();
  }

  // The server, or a proxy before it, is away: it is tried again, ever later and not by all pages at once.
  function lost(status) {
    events.close();
    if (final[status]) { say(final[status]); return; }
    if (!tries) say("Connection lost. Trying again…");
    const pause = Math.min(30_000, 1_000 * 2 ** tries) * (0.5 + Math.random() / 2);
    tries++;
    setTimeout(again, pause);
  }

  async function again() {
    const { status, made } = await fetched("/thread/question", { topic, seq });
    if (!article.isConnected) return;
    if (!made) { lost(status); return; }
    // What somebody is typing stays, unless there is something else to see.
    if (made.dataset.asked === article.dataset.asked) listen();
    else show(made, "live" in made.dataset ? "Connected again." : "The answer is there.");
  }

  // What a run asks the person: a form comes or goes, but what somebody is typing into one stays.
  const asked = new Set(article.dataset.asked.split(",").filter(Boolean));

  function listen() {
    events = new EventSource(`/thread/events?${new URLSearchParams({ topic, seq, after })}`);
    events.addEventListener("open", () => {
      if (tries) say(text || "Connected again.");
      tries = 0;
      walk();
    });
    // It would try again by itself after a connection that broke, but at any answer other than 200 it ends.
    events.addEventListener("error", () => lost(0));
    events.addEventListener("step", (event) => {
      after = event.lastEventId || after;
      let step = "";
      try { step = JSON.parse(event.data).Text ?? ""; } catch { /* a step that says nothing */ }
      if (step) {
        text = step.length > 220 ? `${step.slice(0, 219)}…` : step;
        say(text);
        const state = article.querySelector("[data-state]");
        if (state) state.textContent = "being answered";
      }
      walk();
    });
    // Whether anybody searches, and whether an engine has it: the server has the words.
    events.addEventListener("state", async (event) => {
      const { Status, Engines, Attempts } = JSON.parse(event.data);
      const known = `${Status} ${Attempts}${Engines ? "" : " alone"}`;
      if (known === article.dataset.known) return;
      article.dataset.known = known;
      const { made } = await fetched("/thread/question", { topic, seq });
      const its = made?.querySelector("[data-state]"), state = article.querySelector("[data-state]");
      if (!its || !state || !article.isConnected || article.dataset.known !== known) return;
      state.textContent = its.textContent;
      if (Status !== "Pending" || !text) {
        text = "";
        say(made.querySelector("[data-now]").textContent);
      }
    });
    events.addEventListener("answer", () => replaced("The answer is there."));
    events.addEventListener("question", (event) => {
      const { Id, Answer } = JSON.parse(event.data);
      if ((Answer === null) !== asked.has(String(Id))) replaced(Answer === null ? "The search asks you something." : "");
    });
    events.addEventListener("gone", () => { events.close(); if (!leaving) location.reload(); });
  }
  listen();
}

function path(element, top) {
  const steps = [];
  for (let each = element; each && each !== top; each = each.parentElement) {
    steps.push([...each.parentElement.children].indexOf(each));
  }
  return steps.join(".");
}

function next() {
  const article = document.querySelector("article[data-live]");
  if (article) watch(article);
}
next();
