/* What the run tells, once a second. All of it is shown as text or numbers, never as markup. */

const byId = (id) => document.getElementById(id);
const LOOKS = {
  target: { label: "target", colour: "var(--target)", width: 1.8 },
  static: { label: "static model", colour: "var(--static)", dash: "6 3", width: 1.8 },
  limit: { label: "optimal control", colour: "var(--limit)", dash: "8 3 2 3", width: 1.8 },
  model: { label: "agents", colour: "var(--model)", width: 2.4 },
};
const NAMED = 6; // regions that have a colour each
const region = (i) => `color-mix(in oklab, var(--region-${i}-colour), white var(--lift))`;
const list = (value) => (Array.isArray(value) ? value : []);
const last = (values) => list(values)[list(values).length - 1];
const mean = (values) => {
  const known = list(values).filter(isNumber);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
};

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const pad = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

function stateOf(run) {
  const ways = {
    starting: run.alive ? ["starting", "late"] : ["waiting for the run", "late"],
    training: !run.alive ? ["interrupted", "bad"] : run.episode ? ["training", "good"] : ["compiling", "late"],
    writing: run.alive ? ["writing results", "good"] : ["interrupted", "bad"],
    finished: ["finished", "good"],
    stopped: ["stopped", "bad"],
  };
  return ways[run.state] ?? ["unknown", "late"];
}

function showState(run) {
  const [text, kind] = stateOf(run);
  const pill = byId("state");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
  const name = typeof run.name === "string" ? run.name : "A run";
  byId("name").textContent = name;
  document.title = `${text === "training" ? `${run.episode}/${run.episodes}` : text} · ${name}`;
  const seeds = list(run.seeds).length, regions = list(run.regions).length;
  const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  byId("about").textContent = regions
    ? `${plural(regions, "region")}, ${plural(seeds, "seed")}${seeds > 1 ? " (curves are their mean)" : ""}` : "";
  const notes = [];
  if (text === "interrupted" || text === "stopped") notes.push("The run has ended on the way. --resume resumes it, and this page goes on.");
  if (list(run.lost).length) notes.push(`Diverged and left out: seed ${list(run.lost).join(", ")}.`);
  byId("note").hidden = !notes.length;
  byId("note").textContent = notes.join(" ");
}

function showProgress(run) {
  const [done, all] = [run.episode ?? 0, run.episodes ?? 0];
  const bar = byId("bar");
  bar.setAttribute("aria-valuemax", all);
  bar.setAttribute("aria-valuenow", done);
  bar.firstElementChild.style.width = `${all ? (100 * done) / all : 0}%`;
  const running = run.state === "training" && run.alive;
  const left = run.seconds_left - Math.max(0, Date.now() / 1000 - run.updated);
  const unit = run.field?.error_unit ?? "";
  const figures = [["Episode", `${done}`, `of ${all}`]];
  figures.push(["Time left", running ? duration(left) : "–", isNumber(run.seconds_each) ? `${told(run.seconds_each)} s an episode` : ""]);
  if (list(run.errors).length) {
    const fixed = run.static ? `static model ${told(run.static.globe)} ${unit}` : `after episode ${run.recorded}`;
    figures.push([`Error of the ${run.field.title}`, `${told(last(run.globe))} ${unit}`, fixed]);
  }
  if (list(run.returns).length) {
    const beside = [run.static && `static ${told(mean(run.static.returns))}`, isNumber(run.limit) && `limit ${told(run.limit)}`];
    figures.push(["Mean return", told(mean(last(run.returns))), beside.filter(Boolean).join(", ")]);
  }
  byId("figures").replaceChildren(...figures.map(([name, value, more]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, more)))));
}

function reveal(id, shown) {
  byId(id).hidden = !shown;
  return shown ? byId(id) : null;
}

function range(values, { log = false, quantile = 1 } = {}) {
  const known = values.filter((v) => isNumber(v) && (!log || v > 0)).sort((a, b) => a - b);
  if (!known.length) return log ? [1, 10] : [0, 1];
  const [low, high] = [known[0], known[Math.floor(quantile * (known.length - 1))]];
  if (log) return [low / 1.15, high * 1.15];
  const margin = 0.05 * (high - low) || Math.abs(high) * 0.05 || 1;
  return [low - margin, high + margin];
}

function showReturns(run) {
  const place = reveal("returns", list(run.returns).length > 0);
  if (!place) return;
  const at = run.at, names = run.regions, one = names.length === 1;
  const all = run.returns.map(mean).map((v) => -v);
  const fixed = run.static ? -mean(run.static.returns) : NaN, limit = isNumber(run.limit) ? -run.limit : NaN;
  const named = !one && names.length <= NAMED;
  const series = named ? names.map((_, i) => ({
    x: at, y: run.returns.map((row) => -row[i]), colour: region(i), width: 1.2, opacity: 0.85,
  })) : [];
  const every = series.flatMap((s) => s.y).concat(all, fixed, limit);
  const log = every.filter(isNumber).every((v) => v > 0);
  series.push({ x: at, y: all, ...LOOKS.model });
  const lines = [["static", fixed], ["limit", limit]].filter(([, v]) => isNumber(v));
  const averages = run.every ? Array.from(
    { length: Math.floor((run.episodes - 1) / run.every) }, (_, i) => (i + 1) * run.every) : [];
  const marks = averages.length <= 60 ? averages : [];
  legend(place.querySelector(".legend"), [
    { ...LOOKS.model, label: one ? "return" : "mean of the regions" },
    ...lines.map(([key]) => LOOKS[key]),
  ]);
  const unit = run.return_unit ? ` (${run.return_unit})` : "";
  place.querySelector("h2").textContent = `Return of an episode, negative${unit}: better is up`;
  showCurves(place.querySelector(".chart"), {
    series, lines: lines.map(([key, y]) => ({ y, ...LOOKS[key] })), marks, log, flip: true,
    x: [0, run.episodes], y: range(every, { log }), xName: "Episode",
    label: `Minus the return over the episodes: ${told(all[0])} at first, ${told(last(all))} after episode ${last(at)}`
      + `${isNumber(fixed) ? `, static model ${told(fixed)}` : ""}${isNumber(limit) ? `, optimal control ${told(limit)}` : ""}.`,
  });
  const past = averages.filter((episode) => episode <= run.episode).length;
  byId("averages").textContent = run.every
    ? `Vertical lines: policies are averaged every ${run.every} episodes, ${past} times so far.`
    : (one ? "" : "The regions are never averaged.");
  if (named) byId("averages").textContent += " Thin: each region, in the colour that it has in the table.";
}

function showProfile(run) {
  const place = reveal("profile", list(run.profile ?? run.target).length > 0);
  if (!place) return;
  const x = run.latitudes, keys = [["target", run.target], ["static", run.static?.profile], ["model", run.profile]];
  const known = keys.filter(([, y]) => list(y).length === x.length);
  const fixed = known.filter(([key]) => key !== "model").flatMap(([, y]) => y);
  const [low, high] = range(fixed.length ? fixed : list(run.profile)), reach = 0.25 * (high - low);
  const own = list(run.profile).concat(fixed).filter(isNumber); // far off at first: what matters is near the target
  const y = [Math.min(low, Math.max(Math.min(...own), low - reach)), Math.max(high, Math.min(Math.max(...own), high + reach))];
  const after = run.profile ? `, after episode ${run.recorded}` : "";
  place.querySelector("h2").textContent = `${run.field.title[0].toUpperCase()}${run.field.title.slice(1)} (${run.field.unit})${after}`;
  legend(place.querySelector(".legend"), known.map(([key]) => LOOKS[key]));
  showCurves(place.querySelector(".chart"), {
    series: known.map(([key, y]) => ({ x, y, ...LOOKS[key] })), latitudes: true, x: [-90, 90], y, xName: "Latitude",
    label: `${run.field.title} by latitude${after}, beside target and static model`
      + `${after && `; area-weighted error ${told(last(run.globe))} ${run.field.error_unit}`}.`,
  });
}

function showRegions(run) {
  const place = reveal("regions", list(run.errors).length > 0 && run.regions.length > 1);
  if (!place) return;
  place.querySelector("h2").textContent = `Error of each region (${run.field.error_unit})`;
  const now = last(run.errors), many = run.regions.length > 12;
  const box = place.querySelector(".table");
  if (many) {
    box.className = "chart tall";
    const fixed = list(run.static?.errors);
    const series = [{ x: run.centres, y: now, ...LOOKS.model }];
    if (fixed.length) series.unshift({ x: run.centres, y: fixed, ...LOOKS.static });
    showCurves(box, { series, latitudes: true, x: [-90, 90], y: [0, range(now.concat(fixed))[1]], xName: "Latitude",
      label: `Error of each of ${now.length} regions by latitude: from ${told(Math.min(...now.filter(isNumber)))} to ${told(Math.max(...now.filter(isNumber)))}.` });
    return;
  }
  const head = element("thead", {}, element("tr", {},
    ...["Region", "over time", "now", "static"].map((text) => element("th", { scope: "col" }, text))));
  const body = element("tbody");
  run.regions.forEach((name, i) => {
    const colour = i < NAMED && run.regions.length <= NAMED ? region(i) : "var(--model)";
    const fixed = run.static?.errors?.[i], values = run.errors.map((row) => row[i]);
    const dot = element("i");
    dot.style.background = colour;
    const better = isNumber(fixed) && isNumber(now[i]) ? (now[i] < fixed ? "good" : "bad") : "";
    body.append(element("tr", {},
      element("th", { scope: "row" }, dot, name),
      element("td", { class: "spark" }, spark(run.recorded_at, values, run.episodes, fixed, colour)),
      element("td", { class: better }, element("b", {}, told(now[i]))),
      element("td", {}, told(fixed))));
  });
  box.replaceChildren(element("table", {}, head, body));
}

/** A small curve on a scale of logarithms, with the static model's value across. */
function spark(x, y, end, fixed, colour) {
  const [low, high] = range(y.concat(fixed), { log: true }).map(Math.log);
  const toX = (v) => (v / end) * 200, toY = (v) => 28 - ((Math.log(v) - low) / (high - low || 1)) * 26;
  const root = svg("svg", { viewBox: "0 0 200 30", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (isNumber(fixed) && fixed > 0) root.append(svg("line", { x1: 0, x2: 200, y1: toY(fixed), y2: toY(fixed),
    style: "stroke:var(--static)", "stroke-dasharray": "5 3", "vector-effect": "non-scaling-stroke" }));
  const path = curve({ x, y, colour, width: 1.8 }, toX, toY, true);
  path.setAttribute("vector-effect", "non-scaling-stroke");
  root.append(path);
  return root;
}

const NORTH = [-90, -60, -30, 0, 30, 60, 90].map((x) => [(x + 90) / 180, latitude(x)]);
const EAST = [0, 90, 180, 270, 360].map((x) => [x / 360, `${x}°E`]);

function scale(place, { largest }, unit, note = "red: too much") {
  const limit = `${told(largest)} ${unit}`;
  place.replaceChildren(`−${limit}`, element("i"), `+${limit}`, element("span", {}, note));
}

function showMaps(run) {
  const unit = run.field?.error_unit ?? "";
  const errors = run.history ?? run.relative;
  let place = reveal("history", Boolean(errors));
  if (place) {
    const at = run.recorded_at, ticks = at.length > 1
      ? [0, 0.25, 0.5, 0.75, 1].map((part) => [part, counted(at[Math.round(part * (at.length - 1))])]) : [[0.5, counted(at[0])]];
    place.querySelector("h2").textContent = run.history
      ? `Error of the ${run.field.title} by latitude and episode (${unit})`
      : "Root of the negative return by latitude and episode, against the first (%)";
    showMap(place.querySelector(".chart"), errors, { yTicks: NORTH, xTicks: ticks, xName: "Episode",
      label: `Error at each latitude in each recorded episode, from ${at[0]} to ${last(at)}: red is ${run.history ? "too much, blue too little" : "worse than at first, blue better"}.` });
    if (run.history) scale(place.querySelector(".scale"), errors, unit);
    else scale(place.querySelector(".scale"), errors, "%", "blue: better");
  }
  const shown = run.map ?? run.section;
  place = reveal("map", Boolean(shown));
  if (!place) return;
  const kind = run.map ? "Map" : "Section";
  place.querySelector("h2").textContent = `${kind} of the error of the ${run.field.title} (${unit}), after episode ${run.recorded}`;
  const levels = list(run.field.levels), ups = levels.map((v, i) => [(i + 0.5) / levels.length, `${told(v)}`]);
  const some = ups.filter((_, i) => i % Math.ceil(ups.length / 8) === 0);
  const sides = run.map ? { yTicks: NORTH, xTicks: EAST } : { yTicks: some, xTicks: NORTH, xName: `Latitude; up: ${run.field.level_unit}` };
  showMap(place.querySelector(".chart"), shown, { ...sides,
    label: `${kind} of the error of the ${run.field.title} after episode ${run.recorded}: red is too much, blue too little.` });
  scale(place.querySelector(".scale"), shown, unit);
}

function showParameters(run) {
  const place = reveal("parameters", list(run.rows).length > 0 && Boolean(run.parameters));
  if (!place) return;
  const profiles = run.rows.filter((row) => Array.isArray(row.static));
  const single = run.rows.filter((row) => !Array.isArray(row.static));
  legend(place.querySelector(".legend"), [LOOKS.model, LOOKS.static, { label: "bounds", colour: "var(--soft)", dash: "1.5 3", width: 1 }]);
  const grid = place.querySelector(".small-multiples");
  for (const row of [...profiles, ...single]) {
    let box = [...grid.children].find((one) => one.dataset.symbol === row.symbol);
    if (!box) {
      box = element("div", { "data-symbol": row.symbol }, element("h3"), element("div", { class: "chart" }));
      grid.append(box);
    }
    const value = run.parameters[row.symbol], margin = 0.06 * (row.high - row.low) || 1;
    const unit = row.unit ? ` ${row.unit}` : "";
    const number = Array.isArray(value) ? mean(value) : value;
    box.firstElementChild.replaceChildren(`${row.symbol} `, element("span", {}, `${Array.isArray(value) ? "mean " : ""}${told(number)}${unit}`));
    const over = Array.isArray(row.static) ? { latitudes: true, x: [-90, 90] } : { x: [0, run.episodes], xName: "Episode" };
    const common = { bounds: [row.low, row.high], y: [row.low - margin, row.high + margin], small: true, ...over };
    const label = `${row.name}: ${told(number)}${unit}, static value ${told(mean([row.static].flat()))}, bounds ${told(row.low)} and ${told(row.high)}.`;
    const [fixed, own] = Array.isArray(row.static)
      ? [{ x: run.latitudes, y: row.static }, { x: run.latitudes, y: value }]
      : [{ x: [0, run.episodes], y: [row.static, row.static] }, { x: run.recorded_at, y: list(run.traces?.[row.symbol]) }];
    showCurves(box.lastElementChild, { ...common, label,
      series: [{ ...fixed, ...LOOKS.static }, { ...own, ...LOOKS.model, width: 1.8 }] });
  }
}

function showNodes(run) {
  const place = reveal("nodes", list(run.nodes).length > 0);
  if (!place) return;
  const { finished = 0, all = 0, tries = 0 } = run.rounds ?? {};
  place.querySelector("p").textContent = `Round ${finished} of ${all} is over${tries ? `; the next was lost ${tries} times and is played again` : ""}.`;
  const head = element("thead", {}, element("tr", {},
    ...["Region", "node", "last round answered", "return"].map((text) => element("th", { scope: "col" }, text))));
  const body = element("tbody");
  run.nodes.forEach((node, i) => {
    const on = node.connected === true, behind = finished > 0 && node.answered < finished;
    const text = !on ? "not connected" : behind ? "connected, did not answer" : "connected";
    const value = last(run.returns)?.[i];
    body.append(element("tr", {},
      element("th", { scope: "row" }, list(run.regions)[i] ?? `region ${i}`),
      element("td", { class: !on || behind ? "bad" : "good" }, element("b", {}, text)),
      element("td", {}, node.answered ? String(node.answered) : node.heard ? "before this start" : "none"),
      element("td", {}, told(value))));
  });
  place.querySelector(".table").replaceChildren(element("table", {}, head, body));
}

let before = "";

function show(run) {
  showState(run);
  showProgress(run);
  const now = `${run.updated} ${run.state} ${run.static !== null}`;
  if (now === before) return; // nothing new has been told
  before = now;
  for (const part of [showReturns, showProfile, showRegions, showMaps, showParameters, showNodes]) part(run);
  document.body.dataset.episode = run.episode ?? 0;
}

async function poll() {
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    show(await answer.json());
    document.body.dataset.ready = "yes";
  } catch {
    byId("state").textContent = "no connection";
    byId("state").className = "pill bad";
    byId("note").hidden = false;
    byId("note").textContent = "The page is no longer served: what it shows is the last that was told. fedrain watch RUN serves it again.";
    before = "";
  }
  setTimeout(poll, document.hidden ? 5000 : 1000);
}

poll();
