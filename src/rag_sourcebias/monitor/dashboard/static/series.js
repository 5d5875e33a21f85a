// Series of the server in the shape the charts draw: gaps as gaps, the middle of each step.

const MOST_SHOWN = 8;
const MOST_BANDS = 4;

/** Lines of a series answer: rows of numbers, null where nothing was retrieved. */
export function linesOf(series) {
  const { starts, step_seconds: step } = series;
  const at = [];
  const places = [];
  starts.forEach((start, i) => {
    // A step that is left out is a gap of one point, however long it is.
    if (i && start - starts[i - 1] > 1.5 * step) { at.push(starts[i - 1] + step); places.push(-1); }
    at.push(start);
    places.push(i);
  });
  const row = (values) => places.map((i) => (i < 0 ? null : values?.[i] ?? null));
  const hollow = places.map((i) => i < 0 || !series.retrievals[i] || series.retrievals[i] <= (series.empty?.[i] ?? 0));
  const gapped = (values) => row(values).map((value, i) => (hollow[i] ? null : value));
  return {
    at,
    middles: at.map((start) => start + step / 2),
    step,
    groups: series.groups,
    share: series.share.map(gapped),
    lower: series.lower.map(gapped),
    upper: series.upper.map(gapped),
    retrievals: row(series.retrievals),
    empty: row(series.empty),
    documents: series.groups.map((_, g) => (series.documents[g] ?? []).reduce((sum, n) => sum + (n ?? 0), 0)),
    baseline: series.groups.map((group) => series.baseline?.[group] ?? null),
  };
}

/** Numbers of the groups drawn first: the ones with the most documents. */
export function largest(lines) {
  const human = lines.groups.indexOf("human");
  if (lines.groups.length === 2 && human >= 0) return new Set([human]); // the other is its mirror
  const order = lines.groups.map((_, g) => g).sort((a, b) => lines.documents[b] - lines.documents[a]);
  return new Set(order.slice(0, MOST_SHOWN));
}

/** Whether bands are drawn: those of many groups would hide one another. */
export const banded = (shown) => shown.size <= MOST_BANDS;

/** Lowest and highest share on the axis, with some air. */
export function rangeOf(lines, shown) {
  const values = [];
  for (const g of shown) {
    const ends = banded(shown) ? [lines.lower[g], lines.upper[g]] : [];
    for (const row of [...ends, lines.share[g], [lines.baseline[g]]]) {
      for (const value of row) if (value !== null) values.push(value);
    }
  }
  if (!values.length) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const air = Math.max(0.02, (high - low) * 0.08);
  return [Math.max(0, low - air), Math.min(1, high + air)];
}

/** Ends of the time axis: those of the data where they fill less than half of what was asked. */
export function windowOf(lines, since, until) {
  const ends = [lines.at[0], lines.at.at(-1) + lines.step];
  const asked = [Math.min(since, ends[0]), Math.max(until, since + 60)];
  return ends[1] - ends[0] < (asked[1] - asked[0]) / 2 ? ends : asked;
}

/** Runs of neighbouring points that have a value, as [first, last]. */
export function runs(row) {
  const found = [];
  row.forEach((value, i) => {
    if (value === null) return;
    if (i && row[i - 1] !== null) found.at(-1)[1] = i;
    else found.push([i, i]);
  });
  return found;
}
