// Ask, draw, wait, ask again.

import { drawAlarms } from "./alarms.js";
import { ask } from "./api.js";
import { drawChart, setUp } from "./chart.js";
import { drawControls } from "./controls.js";
import { byId } from "./dom.js";
import { drawDrill, readDrill } from "./drill.js";
import { drawFooter } from "./footer.js";
import { headline } from "./headline.js";
import { connected, lost } from "./live.js";
import { drawStages } from "./stages.js";
import { onChange, question, view as viewOf } from "./state.js";
import { drawTable } from "./table.js";

const EVERY = 5_000;
const SLOWEST = 60_000;
const IDLE = 60; // seconds after which charts move on although nothing was retrieved
const TITLES = {
  exposure: "Share of the exposure over time",
  first: "Share of the first ranks over time",
};

let timer = null;
let failures = 0;
let turn = 0; // of the newest question: older answers are thrown away
let overview = null;
let drawn = { key: "", at: 0 };

function draw(found) {
  const view = viewOf(overview);
  document.body.classList.remove("waiting");
  const { mood, text, detail } = headline(overview, view);
  const title = byId("headline");
  if (title.textContent !== text) title.textContent = text;
  title.className = `headline ${mood}`;
  byId("detail").textContent = detail;
  byId("log-name").textContent = overview.log.name;
  document.title = mood === "alarm" ? "● Alarm: retrieval skew" : "Retrieval skew";
  byId("chart-title").textContent = TITLES[view.measure];
  drawControls(byId("controls"), overview, view);
  drawTable(byId("groups"), overview, view);
  drawFooter(byId("facts"), overview);
  if (!found) return;
  drawChart(found.series, { ...found.view, alarms: found.alarms?.alarms }, overview);
  drawAlarms(byId("alarm-list"), overview, found.alarms);
  drawDrill(byId("retrievals"), found.drill);
  drawStages(byId("stages"), found.stages, found.view.by);
}

/** Everything below the headline, unless nothing happened since it was drawn. */
async function readParts() {
  const now = overview.generated_at;
  const view = viewOf(overview);
  const key = JSON.stringify([view, overview.log.n_written, overview.follower.n_read, overview.alarms_active]);
  if (key === drawn.key && now - drawn.at < IDLE) return null;
  if (!overview.log.n_written) return { key, at: now, view, series: null, alarms: null, drill: null, stages: null };
  const parameters = question(view, now);
  const wanted = new URLSearchParams([...parameters, ["measure", view.measure]]);
  const [series, alarms, drill, stages] = await Promise.all([
    ask("api/series", wanted),
    ask("api/alarms", "limit=100"),
    readDrill(view, now),
    ask("api/stages", parameters),
  ]);
  const since = Number(parameters.get("since") ?? series.starts[0] ?? now);
  return { key, at: now, view: { ...view, since }, series, alarms, drill, stages };
}

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  try {
    overview = await ask("api/overview");
    if (mine !== turn) return;
    draw(null); // the state comes first, whatever happens to the rest
    const found = await readParts();
    if (mine !== turn) return;
    draw(found);
    if (found) drawn = { key: found.key, at: found.at };
    failures = 0;
    connected(overview);
  } catch (error) {
    if (mine !== turn) return;
    failures += 1;
    drawn = { key: "", at: 0 };
    lost(error, wait());
  }
  schedule();
}

const wait = () => Math.min(SLOWEST, EVERY * 2 ** Math.min(failures, 6));

function schedule() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, wait());
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else refresh();
});
addEventListener("online", refresh);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
setUp(byId("chart"));
onChange(() => {
  if (overview) drawControls(byId("controls"), overview, viewOf(overview));
  if (!viewOf(overview).drill) drawDrill(byId("retrievals"), null); // at once, even offline
  refresh();
});
refresh();
