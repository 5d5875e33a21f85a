// Elements made from data. Text only ever becomes a text node: labels, sources and ids come from
// requests and must never be read as markup.

export const byId = (id) => document.getElementById(id);

/** Make an element. `on` holds listeners, `css` styles (set through CSSOM: the page's policy
 * allows no style attributes in markup); anything else is an attribute. */
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (key === "css") {
      for (const [rule, text] of Object.entries(value)) element.style.setProperty(rule, text);
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Put new children into an element, unless they are the same as the old ones. What has the focus
 * and which details are open survives, told by `data-key`. */
export function redraw(parent, ...children) {
  const next = parent.cloneNode(false);
  next.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  for (const open of parent.querySelectorAll("details[open][data-key]")) {
    const same = find(next, open.dataset.key);
    if (same) same.open = true;
  }
  if (next.isEqualNode(parent)) return;
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const scrolled = [...parent.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  parent.replaceChildren(...next.childNodes);
  parent.querySelectorAll(".scroll").forEach((box, i) => { box.scrollLeft = scrolled[i] ?? 0; });
  if (focused) find(parent, focused)?.focus({ preventScroll: true });
}

function find(parent, key) {
  return [...parent.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
}
