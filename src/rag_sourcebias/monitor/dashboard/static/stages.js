// From stage to stage: what of each group is left of what was retrieved.

import { h, redraw } from "./dom.js";
import { count, interval, percent, plural } from "./format.js";
import { mark } from "./legend.js";
import { titleOf } from "./palette.js";

const signed = (value) => (Math.abs(value) < 0.0005 ? "0.0" : (100 * value).toFixed(1)).replace("-", "\u2212");
const points = (value) => `${value >= 0.0005 ? "+" : ""}${signed(value)} points`;
const clear = (change) => change.lower > 0 || change.upper < 0;

function cell(share, change) {
  if (share.mean === null) return h("td", { class: "num muted" }, "–");
  const moved = change && change.mean !== null
    ? h("div", { class: clear(change) ? null : "muted" }, `${points(change.mean)} [${signed(change.lower)}, ${signed(change.upper)}]`)
    : null;
  return h("td", { class: "num" }, h("strong", {}, percent(share.mean)), ` ${interval(share.lower, share.upper)}`, moved);
}

/** Hidden where no request has a second stage. */
export function drawStages(box, found, by) {
  box.hidden = !found?.stages.length;
  if (box.hidden) return;
  const { stages } = found;
  const { groups } = stages[0];
  redraw(box,
    h("h2", { id: "stages-title" }, "From stage to stage"),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {},
        h("th", { scope: "col" }, "Stage"), h("th", { scope: "col", class: "num" }, "Requests"),
        groups.map((name) => h("th", { scope: "col", class: "num" }, mark(by, name), " ", titleOf(name))))),
      h("tbody", {}, stages.map((one) => h("tr", {},
        h("th", { scope: "row" }, one.stage),
        h("td", { class: "num" }, count(one.requests), one.empty ? h("div", { class: "muted" }, `${count(one.empty)} empty`) : null),
        groups.map((_, i) => cell(one.shares[i], one.changes?.[i]))))))),
    h("p", { class: "note" }, `Mean share of the exposure in the latest ${plural(found.requests, "request")} that have several stages; below it, the change from the stage before in the same requests.`));
}
