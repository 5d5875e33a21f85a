// What is shown: range, by, measure, labels.

import { h, redraw } from "./dom.js";
import { pairsOf, whereOf } from "./labels.js";
import { RANGES, change } from "./state.js";

const NAMES = { source: "source", style: "style", exposure: "exposure", first: "first ranks" };
const MOST_SETS = 500;

function choice(legend, name, options, current) {
  const buttons = options.map(([value, text]) =>
    h("button", {
      type: "button",
      "data-key": `${name}:${value}`,
      "aria-pressed": String(value === current),
      on: { click: () => change({ [name]: value }) },
    }, text));
  return h("fieldset", { class: "choice" }, h("legend", {}, legend), h("div", {}, buttons));
}

function labelChoice(sets, current) {
  const wanted = JSON.stringify(current);
  const options = sets.filter((labels) => pairsOf(labels).length).slice(0, MOST_SETS)
    .map((labels) => [JSON.stringify(pairsOf(labels)), whereOf(labels)]);
  if (current.length && !options.some(([value]) => value === wanted)) options.push([wanted, current.join(", ")]);
  if (!options.length) return null;
  const select = h("select", {
    "data-key": "labels",
    on: { change: (event) => change({ labels: JSON.parse(event.target.value) }) },
  },
  [["[]", "all"], ...options].map(([value, text]) =>
    h("option", { value, selected: value === wanted }, text)));
  return h("label", { class: "choice" }, h("span", {}, "Labels"), select);
}

export function drawControls(form, overview, view) {
  const named = (values) => values.map((value) => [value, NAMES[value]]);
  redraw(form,
    choice("Time", "range", RANGES, view.range),
    choice("By", "by", named(["source", "style"]), view.by),
    choice("Share of", "measure", named(["exposure", "first"]), view.measure),
    labelChoice(overview.label_sets, view.labels));
}
