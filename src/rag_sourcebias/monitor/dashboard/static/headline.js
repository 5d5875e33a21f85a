// The state in one sentence.

import { count, percent, plural, short } from "./format.js";
import { chosen, pairsOf, whereOf } from "./labels.js";
import { titleOf } from "./palette.js";

const WHAT = { exposure: "the exposure", first: "the first ranks" };
const MOST_TOLD = 2;

const title = (by, group) =>
  group === "" ? "untagged documents" : by === "style" ? `documents of style ${titleOf(group)}` : `${titleOf(group)} documents`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** "In collection docs, human documents hold 47.5 % of the exposure over 12 retrievals; baseline 50 %." */
function told(snapshot, shares, alone) {
  const where = alone ? "" : `${pairsOf(snapshot.labels).length ? "in " : ""}${whereOf(snapshot.labels, false)}, `;
  const said = shares.map((share, i) => {
    const of = i && share.measure === shares[i - 1].measure ? "" : ` of ${WHAT[share.measure]}`;
    return `${title(snapshot.by, share.group)}${i ? "" : " hold"} ${percent(share.share)}${of}`;
  });
  const levels = shares.map((share) => share.baseline).filter((level) => level !== null);
  const same = new Set(levels.map(short)).size === 1;
  const against = levels.length ? `; baseline ${(same ? levels.slice(0, 1) : levels).map(short).join(" and ")}` : "";
  const over = snapshot.block && shares.some((share) => share.alarm) ? "since the shift" : `over ${plural(snapshot.n_retrievals, "retrieval")}`;
  return `${capital(where + said.join(", "))} ${over}${against}.`;
}

/** The group a reader asks about first: the one that is tested and furthest from its baseline. */
function foremost(shares) {
  const named = shares.filter((share) => share.group !== "" && share.share !== null);
  const human = named.find((share) => share.group === "human");
  const far = (share) => (share.baseline === null ? -1 : Math.abs(share.share - share.baseline));
  return human ?? named.sort((a, b) => far(b) - far(a) || b.share - a.share)[0];
}

/** Mood, sentence and detail; `canaries` is the number of canaries in alarm. */
export function headline(overview, view, canaries) {
  const all = overview.monitor.snapshots;
  const snapshots = chosen(all, view.labels);
  const pairs = snapshots.flatMap((one) => one.groups.map((share) => [one, share]));
  const alarms = pairs.filter(([, share]) => share.alarm);
  // Of one group the exposure says it all; first ranks are told where they alone raise an alarm.
  const first = alarms.filter(([one, share]) => share.measure === "exposure"
    || !alarms.some(([other, its]) => other === one && its.group === share.group && its.measure === "exposure"));
  const alone = all.length <= 1;
  if (!overview.log.n_written) {
    return { mood: "wait", text: "No retrieval was logged yet.", detail: `Point your application's EventLog at ${overview.log.name}; this page fills itself as soon as events arrive.` };
  }
  if (alarms.length) {
    const leading = first.slice(0, MOST_TOLD);
    const words = [...new Set(leading.map(([one]) => one))].map((one) =>
      told(one, leading.filter(([its]) => its === one).map(([, share]) => share), alone));
    const rest = first.length > MOST_TOLD ? ` And ${count(first.length - MOST_TOLD)} more, below.` : "";
    // In blocks a shift is one alarm, whatever it moves.
    const many = alarms[0][0].block ? new Set(alarms.map(([one]) => one)).size : alarms.length;
    const start = many === 1 ? "Alarm." : `${count(many)} alarms.`;
    return { mood: "alarm", text: `${start} ${words.join(" ")}${rest}`, detail: context(overview) };
  }
  const tested = pairs.some(([, share]) => share.baseline !== null);
  const quiet = tested ? "No alarm." : "Nothing is tested yet.";
  const start = canaries ? "The canary queries raise an alarm; live retrievals do not." : quiet;
  const elsewhere = overview.alarms_active && snapshots.length < all.length
    ? ` But ${plural(overview.alarms_active, "alarm")} elsewhere: choose all labels.` : "";
  const one = [...snapshots].sort((a, b) => b.n_retrievals - a.n_retrievals)[0];
  const shares = one?.groups.filter((share) => share.measure === view.measure) ?? [];
  const share = foremost(shares.length ? shares : one?.groups ?? []);
  const text = share ? told(one, [share], alone) : `${plural(overview.log.n_written, "retrieval")} logged.`;
  const calm = overview.follower.error === null && tested ? "ok" : "wait";
  return { mood: elsewhere || canaries ? "alarm" : calm, text: `${start} ${text}${elsewhere}`, detail: context(overview) };
}

function context(overview) {
  const { baseline, confidence_level: level } = overview.monitor;
  if (!overview.monitor.snapshots.length) return "The monitor has read none of them yet.";
  const block = overview.monitor.snapshots[0].block;
  return `Baseline: ${baseline.replace(/^no baseline$/, "none, so that shares are shown and not tested")}. `
    + (block ? `Tested in blocks of ${count(Math.round(block.retrievals))} retrievals; ${block.days < 7 ? "notices only, until seven days were watched" : "a shift is told after a block at the soonest"}.`
      : `Alarms hold under continuous looking while retrievals are independent (false alarms at most ${short(1 - level)} per set of labels).`);
}
