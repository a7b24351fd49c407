// What all pages do: colours, one-time codes in the address, keys that send a form, and searches that go on.

const root = document.documentElement;

// colours
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
function colours() {
  return root.dataset.theme ?? (dark.matches ? "dark" : "light");
}
function label() {
  button.setAttribute("aria-label", colours() === "dark" ? "Use light colours" : "Use dark colours");
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
const code = document.getElementById("code");
const given = new URLSearchParams(location.hash.slice(1)).get("code");
if (code && given) {
  code.value = given;
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("by-secret").hidden = true;
  const details = document.getElementById("by-code");
  details.open = true;
  details.querySelector("button").focus();
}

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

// Searches that go on: one at a time, as engines answer the questions of a topic in order.
const told = document.getElementById("told");

async function fragment(path, given) {
  const answer = await fetch(`${path}?${new URLSearchParams(given)}`, { headers: { Accept: "text/html" } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) return null;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  return document.adoptNode(parsed.body.firstElementChild);
}

function watch(article) {
  const { topic, seq, after } = article.dataset;
  const events = new EventSource(`/thread/events?${new URLSearchParams({ topic, seq, after })}`);
  const now = article.querySelector("[data-now]");
  let seen = after, wanted = false, busy = false;

  async function walk() {
    if (busy) { wanted = true; return; }
    busy = true;
    do {
      wanted = false;
      const place = article.querySelector("[data-walk]");
      const opened = new Set([...place.querySelectorAll("details[open]")].map((each) => path(each, place)));
      const focused = place.contains(document.activeElement) ? path(document.activeElement, place) : null;
      const made = await fragment("/thread/walk", { topic, seq, after: seen });
      if (!made || !place.isConnected) break;
      seen = made.dataset.after;
      place.replaceWith(made);
      for (const each of made.querySelectorAll("details")) each.open = opened.has(path(each, made));
      if (focused) [...made.querySelectorAll("a, summary")].find((each) => path(each, made) === focused)?.focus();
      await new Promise((resolve) => setTimeout(resolve, 150));
    } while (wanted);
    busy = false;
  }

  events.addEventListener("step", (event) => {
    let text = "";
    try { text = JSON.parse(event.data).Text ?? ""; } catch { /* a step that says nothing */ }
    if (text) {
      now.textContent = text.length > 220 ? `${text.slice(0, 219)}…` : text;
      if (told) told.textContent = now.textContent;
      const state = article.querySelector("[data-state]");
      if (state) state.textContent = "searching";
    }
    walk();
  });
  async function replaced(words) {
    events.close();
    const made = await fragment("/thread/question", { topic, seq });
    if (!made) return;
    const within = article.contains(document.activeElement);
    article.replaceWith(made);
    if (within) made.focus();
    if (told) told.textContent = words;
    next();
  }
  events.addEventListener("answer", () => replaced("The answer is there."));
  // What a run asks the person: a form comes or goes, but what somebody is typing into one stays.
  const asked = new Set(article.dataset.asked.split(",").filter(Boolean));
  events.addEventListener("question", (event) => {
    const { Id, Answer } = JSON.parse(event.data);
    if ((Answer === null) !== asked.has(String(Id))) replaced(Answer === null ? "The search asks you something." : "");
  });
  events.addEventListener("gone", () => { events.close(); location.reload(); });
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
