// The tree by keyboard, as the ARIA authoring practices have it (APG, "Tree View"): one item takes the focus, arrows
// move, open and close, Home and End jump, letters find. Children come from the server page by page, when asked for.

const tree = document.getElementById("tree");
const told = document.getElementById("told");
document.querySelector(".keys").hidden = false;

function items() {
  return [...tree.querySelectorAll("[role=treeitem]")].filter((each) => !each.parentElement.closest(".closed"));
}
function level(item) {
  let count = 1 + Number(tree.dataset.depth);
  for (let each = item.parentElement.closest("li"); each; each = each.parentElement.closest("li")) count++;
  return count;
}

function prepare(list) {
  for (const item of list.querySelectorAll("li")) {
    if (item.getAttribute("role")) continue;
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", level(item));
    item.tabIndex = -1;
    for (const link of item.querySelectorAll(":scope > .line a, :scope > a")) link.tabIndex = -1;
    if (item.classList.contains("more")) {
      item.setAttribute("aria-label", item.textContent.trim());
      continue;
    }
    item.setAttribute("aria-posinset", item.dataset.number);
    item.setAttribute("aria-setsize", item.dataset.size);
    const name = item.querySelector(".name").textContent;
    const said = item.querySelector(":scope > .line > .said")?.textContent ?? "";
    item.setAttribute("aria-label", said ? `${name}: ${said.slice(0, 120)}` : name);
    if (item.dataset.count !== "0") item.setAttribute("aria-expanded", String("open" in item.dataset));
    item.querySelector(":scope > ul")?.setAttribute("role", "group");
    for (const count of item.querySelectorAll(":scope > .line > .count")) count.removeAttribute("aria-label");
  }
}

function focus(item) {
  for (const each of tree.querySelectorAll("[role=treeitem][tabindex='0']")) each.tabIndex = -1;
  item.tabIndex = 0;
  item.focus({ preventScroll: true });
  (item.querySelector(":scope > .line") ?? item).scrollIntoView({ block: "nearest" });
}

async function fetched(parent, start) {
  const answer = await fetch(`/tree/children?${new URLSearchParams({ id: parent, start, tree: tree.dataset.tree || "" })}`);
  if (answer.status === 401) location.reload();
  if (!answer.ok) return null;
  const list = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("ul");
  return list && document.adoptNode(list);
}

async function open(item) {
  if (item.dataset.count === "0" || item.classList.contains("busy")) return;
  if (!item.querySelector(":scope > ul")) {
    item.classList.add("busy");
    item.setAttribute("aria-busy", "true");
    const list = await fetched(item.dataset.id, 0);
    item.classList.remove("busy");
    item.removeAttribute("aria-busy");
    if (!list) { told.textContent = "This could not be opened."; return; }
    item.append(list);
    list.setAttribute("role", "group");
    prepare(list);
  }
  item.dataset.open = "";
  item.classList.remove("closed");
  item.setAttribute("aria-expanded", "true");
}

function close(item) {
  item.classList.add("closed");
  item.setAttribute("aria-expanded", "false");
}
function isOpen(item) {
  return item.getAttribute("aria-expanded") === "true";
}
function toggle(item) {
  return isOpen(item) ? close(item) : open(item);
}

async function more(item) {
  if (item.classList.contains("busy")) return;
  item.classList.add("busy");
  const { parent, start, way } = item.dataset;
  const list = await fetched(parent, start);
  item.classList.remove("busy");
  if (!list) return;
  // Of a page in the middle, the way on in the other direction is there already.
  list.querySelector(`:scope > .more[data-way=${way === "later" ? "earlier" : "later"}]`)?.remove();
  const held = item.parentElement;
  const known = new Set([...held.children].map((each) => each.dataset.number));
  const made = [...list.children].filter((each) => !each.dataset.number || !known.has(each.dataset.number));
  const at = document.activeElement === item;
  item.replaceWith(...made);
  prepare(held);
  const real = made.filter((each) => !each.classList.contains("more"));
  if (at || item.contains(document.activeElement)) focus(way === "later" ? real[0] : real[real.length - 1]);
  else if (!tree.querySelector("[tabindex='0']")) real[0].tabIndex = 0;
  told.textContent = `${real.length} more`;
}

tree.setAttribute("role", "tree");
prepare(tree);
const first = tree.querySelector("[data-at]") ?? tree.querySelector("[role=treeitem]");
first.tabIndex = 0;
if (tree.querySelector("[data-at]") && first !== tree.firstElementChild) {
  first.querySelector(":scope > .line").scrollIntoView({ block: "center" });
}

// What was open stays open when somebody comes back: it is kept with this entry of the browser's history.
addEventListener("pagehide", () => {
  const open = [...tree.querySelectorAll("li[aria-expanded='true']")].map((each) => each.dataset.id);
  const at = tree.querySelector("[role=treeitem][tabindex='0']")?.dataset.id;
  history.replaceState({ open: open.slice(0, 200), at, top: scrollY }, "");
});
async function restore({ open: ids, at, top }) {
  const find = (id) => tree.querySelector(`li[data-id="${CSS.escape(id)}"]`);
  for (const item of items()) if (isOpen(item) && !ids.includes(item.dataset.id)) close(item);
  for (const id of ids) {
    const item = find(id);
    if (item && !isOpen(item)) await open(item);
  }
  const item = at && find(at);
  if (item) focus(item);
  scrollTo(0, top);
}
const [entry] = performance.getEntriesByType("navigation");
if (history.state?.open && entry?.type !== "navigate") restore(history.state);

tree.addEventListener("click", (event) => {
  const item = event.target.closest("li");
  if (!item || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (item.classList.contains("more")) {
    event.preventDefault();
    focus(item);
    more(item);
  } else if (event.target.closest(".twist, .count")) {
    event.preventDefault();
    focus(item);
    toggle(item);
  }
});

let letters = "", latest = 0;
tree.addEventListener("keydown", async (event) => {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
  const all = items(), at = all.indexOf(item);
  const go = (index) => all[index] && focus(all[index]);
  switch (event.key) {
    case "ArrowDown": go(at + 1); break;
    case "ArrowUp": go(at - 1); break;
    case "Home": go(0); break;
    case "End": go(all.length - 1); break;
    case "ArrowRight":
      if (item.classList.contains("more")) await more(item);
      else if (isOpen(item)) go(at + 1);
      else await open(item);
      break;
    case "ArrowLeft":
      if (isOpen(item)) close(item);
      else { const up = item.parentElement.closest("[role=treeitem]"); if (up) focus(up); }
      break;
    case "Enter":
      if (item.classList.contains("more")) await more(item);
      else item.querySelector(".name").click();
      break;
    case " ":
      if (item.classList.contains("more")) await more(item); else await toggle(item);
      break;
    default: {
      if (event.key.length !== 1 || event.key === " ") return;
      letters = event.timeStamp - latest < 600 ? letters + event.key.toLowerCase() : event.key.toLowerCase();
      latest = event.timeStamp;
      // The same letter again goes on to the next that begins with it.
      const typed = [...letters].every((each) => each === letters[0]) ? letters[0] : letters;
      const from = typed.length > 1 ? at : at + 1;
      const found = [...all.slice(from), ...all.slice(0, from)].find((each) =>
        each.querySelector(".name")?.textContent.toLowerCase().startsWith(typed));
      if (found) focus(found);
    }
  }
  event.preventDefault();
});
