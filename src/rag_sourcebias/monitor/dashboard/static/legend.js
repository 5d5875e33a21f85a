// Values of the step under the cursor, or of the latest one; a press shows or hides a group.

import { h, redraw } from "./dom.js";
import { count, interval, percent, span, utc } from "./format.js";
import { lookOf, titleOf } from "./palette.js";

const MOST = 24;

export const mark = (by, group, title = titleOf(group)) => {
  const look = lookOf(by, group);
  return h("span", { class: `mark c-${look.colour}`, title }, look.letter);
};

export function drawLegend(box, now, toggle) {
  const { lines, by, shown } = now;
  const last = lines.retrievals.findLastIndex((n) => n !== null);
  const i = now.index !== null && now.index < lines.at.length ? now.index : last;
  const order = lines.groups.map((_, g) => g).sort((a, b) => lines.documents[b] - lines.documents[a]);
  const when = h("p", { class: "when", title: utc(lines.at[i]) },
    h("strong", {}, span(lines.at[i], lines.step)),
    ` ${count(lines.retrievals[i] ?? 0)} retrieved`,
    lines.empty[i] ? `, ${count(lines.empty[i])} empty` : "");
  const entries = order.slice(0, MOST).map((g) => {
    const range = interval(lines.lower[g][i], lines.upper[g][i]);
    return h("button", {
      type: "button",
      class: "entry",
      "data-key": `legend:${lines.groups[g]}`,
      "aria-pressed": String(shown.has(g)),
      title: shown.has(g) ? "Hide in the chart" : "Show in the chart",
      on: { click: () => toggle(g) },
    },
    mark(by, lines.groups[g]),
    h("span", { class: "name" }, titleOf(lines.groups[g])),
    h("span", { class: "value" }, percent(lines.share[g][i])),
    h("span", { class: "ends" }, range));
  });
  const more = order.length - MOST;
  redraw(box, when, entries, more > 0 ? h("p", { class: "small" }, `and ${count(more)} more`) : null);
}
