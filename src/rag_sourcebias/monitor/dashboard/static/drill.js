// Latest retrievals of a step or of a group, in pages.

import { ask } from "./api.js";
import { h, redraw } from "./dom.js";
import { count, span, time, utc } from "./format.js";
import { drawRetrievals } from "./retrievals.js";
import { titleOf } from "./palette.js";
import { change, question } from "./state.js";

const PAGE = 50;
let shown = { key: "", rows: [], next: null, pages: 0 };
let busy = false;

function parametersOf(view, now) {
  const { drill } = view;
  const out = question(view, now);
  out.set("limit", String(PAGE));
  for (const name of ["since", "until"]) if (drill[name] !== null) out.set(name, String(drill[name]));
  if (drill.group !== null) {
    out.set("group", drill.group);
    if (drill.first) out.set("first", "1");
  }
  return out;
}

/** Read the first page again, unless a reader went on to older ones. */
export async function readDrill(view, now) {
  if (!view.drill) return null;
  const key = JSON.stringify([view.drill, view.by, view.labels, view.range]);
  if (key === shown.key && shown.pages > 1) return shown;
  const answer = await ask("api/retrievals", parametersOf(view, now));
  return { key, rows: answer.retrievals, next: answer.next, pages: 1, view, now };
}

export function drawDrill(box, found) {
  const opened = found !== null && found.key !== shown.key;
  shown = found ?? { key: "", rows: [], next: null, pages: 0 };
  box.hidden = found === null;
  if (found === null) { box.replaceChildren(); return; }
  draw(box);
  if (opened) {
    box.scrollIntoView({ block: "nearest" });
    box.querySelector("h2").focus({ preventScroll: true });
  }
}

async function older(box) {
  if (busy || shown.next === null) return;
  busy = true;
  const at = shown;
  const parameters = parametersOf(at.view, at.now);
  parameters.set("before", String(at.next));
  try {
    const answer = await ask("api/retrievals", parameters);
    if (shown.key !== at.key) return;
    shown = { ...at, rows: [...at.rows, ...answer.retrievals], next: answer.next, pages: at.pages + 1, trouble: null };
  } catch (error) {
    shown = { ...shown, trouble: error.message };
  } finally {
    busy = false;
  }
  draw(box);
}

function titleText({ drill }) {
  const what = drill.group === null ? "" : ` with documents of ${titleOf(drill.group)}${drill.first ? " at rank 1" : ""}`;
  if (drill.since !== null && drill.until !== null) return `Retrievals${what}, ${span(drill.since, drill.until - drill.since)}`;
  return `Latest retrievals${what}`;
}

function draw(box) {
  const { view } = shown;
  const { drill } = view;
  const tools = [
    drill.group === null ? null : h("label", { class: "check" }, h("input", {
      type: "checkbox", checked: drill.first, "data-key": "drill:first",
      on: { change: (event) => change({ drill: { ...drill, first: event.target.checked } }) },
    }), ` only where ${titleOf(drill.group)} is at rank 1`),
    h("button", { type: "button", "data-key": "drill:close", on: { click: () => change({ drill: null }) } }, "Close"),
  ];
  const end = shown.next === null
    ? h("p", { class: "note" }, shown.rows.length ? `${count(shown.rows.length)} shown; there are no older ones.` : "")
    : h("p", { class: "more" }, h("button", { type: "button", "data-key": "drill:older", on: { click: () => older(box) } }, "Older"),
      h("span", { class: "note", title: utc(shown.rows.at(-1)?.at ?? 0) }, ` ${count(shown.rows.length)} shown${shown.rows.length ? `, back to ${time(shown.rows.at(-1).at)}` : ""}`));
  redraw(box,
    h("div", { class: "drill-head" }, h("h2", { id: "retrievals-title", tabindex: "-1", "data-key": "drill:title" }, titleText(view)), h("div", { class: "tools" }, tools)),
    shown.trouble ? h("p", { class: "warnings" }, shown.trouble) : null,
    drawRetrievals(shown.rows, view, shown.next !== null),
    end);
}
