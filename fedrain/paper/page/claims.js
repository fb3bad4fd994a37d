/* Verdicts: each has a sign of its own beside its colour. */

const VERDICTS = {
  holds: { kind: "holds", sign: "✓", short: "hold" },
  "points that way": { kind: "points", sign: "↗", short: "point that way" },
  "holds in part": { kind: "partly", sign: "◐", short: "hold in part" },
  mixed: { kind: "undecided", sign: "≈", short: "mixed" },
  "not decided by ten seeds": { kind: "undecided", sign: "?", short: "not decided" },
  "does not hold": { kind: "fails", sign: "✗", short: "do not hold" },
  "not run yet": { kind: "open", sign: "…", short: "not run yet" },
  "no figures": { kind: "open", sign: "–", short: "no figures" },
};
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const presetsOfClaims = Object.keys(data.claims[0].byPreset);
const COLUMNS = [["published", "in the published figures"], ...presetsOfClaims.map((p) => [p, `ours, preset ${p}`])];
COLUMNS[0] = ["theirs", "the paper’s figures"];
const findingOf = (claim, column) => (column === "theirs" ? claim.published ?? ["no figures", "not published"] : claim.byPreset[column]);
const oursOf = (claim) => claim.byPreset[claim.preset][0];

function tile(verdict) {
  const { kind, sign } = VERDICTS[verdict];
  return element("span", { class: `tile ${kind}`, title: verdict }, element("span", { "aria-hidden": "true" }, sign), element("span", { class: "hidden" }, verdict));
}

function topicOf(claim) {
  return claim.beside !== "published" ? "Cost" : claim.published ? "Skill" : "Training";
}

function showClaims() {
  const list = byId("claim-list"), made = [];
  list.append(element("div", { class: "claim head", "aria-hidden": "true" }, element("span", {}, "Claim; open one for its evidence"),
    ...COLUMNS.map(([column]) => element("span", { class: "column" }, column === "theirs" ? "paper’s figures" : `ours, ${column}`))));
  for (const topic of ["Training", "Cost", "Skill"]) {
    const title = element("h3", {}, topic === "Cost" ? "Cost (beside the reference implementation, measured here)" : topic);
    list.append(title);
    for (const claim of data.claims.filter((c) => topicOf(c) === topic)) {
      const row = element("summary", { class: "claim" }, element("span", {}, claim.statement),
        ...COLUMNS.map(([column]) => tile(findingOf(claim, column)[0])));
      const evidence = element("dl", {}, element("dt", {}, "Decided by"), element("dd", {}, `${claim.test}.`),
        ...COLUMNS.flatMap(([column, name]) => {
          const [verdict, why] = findingOf(claim, column);
          const source = column === "theirs" && claim.beside !== "published" ? "the reference implementation" : name;
          return [element("dt", {}, capital(source)), element("dd", {}, `${capital(verdict)}: ${why}.`)];
        }));
      const card = element("details", { class: "verdict" }, row, evidence);
      made.push({ claim, card, title });
      list.append(card);
    }
  }
  showCounts();
  const kinds = Object.keys(VERDICTS).filter((v) => data.claims.some((c) => oursOf(c) === v));
  const group = element("fieldset", {}, element("legend", {}, "claims by our verdict"));
  for (const verdict of ["all", ...kinds]) {
    const number = data.claims.filter((c) => verdict === "all" || oursOf(c) === verdict).length;
    const input = element("input", { type: "radio", name: "claims", value: verdict });
    input.checked = verdict === "all";
    input.addEventListener("change", () => {
      for (const { claim, card } of made) card.hidden = verdict !== "all" && oursOf(claim) !== verdict;
      for (const title of new Set(made.map((m) => m.title))) title.hidden = made.every((m) => m.title !== title || m.card.hidden);
    });
    group.append(element("label", {}, input, verdict === "all" ? `all ${number}` : `${VERDICTS[verdict].sign} ${VERDICTS[verdict].short} ${number}`));
  }
  byId("claim-choice").append(group);
  const count = (verdict) => data.claims.filter((c) => oursOf(c) === verdict).length;
  const told = Object.keys(VERDICTS).filter(count).map((v) => `${count(v)} ${VERDICTS[v].short}`);
  byId("claim-summary").textContent = `Of the paper’s ${data.claims.length} claims, put to our figures (of preset ${presetsOfClaims.join(", or else ")}, the first with all cells of a claim): ${told.join(", ")}.`;
}

/* How many claims have each verdict, in each source of figures: a strip with a part for each. */
function showCounts() {
  const place = byId("claim-figure"), title = "Verdicts on the claims in each source of figures";
  const chart = element("div", { class: "counts", role: "img" });
  const counts = COLUMNS.map(([column, name]) => ({ name, of: Object.keys(VERDICTS).map((v) => [v, data.claims.filter((c) => findingOf(c, column)[0] === v).length]) }));
  chart.setAttribute("aria-label", `${title}. ${counts.map(({ name, of }) => `${name}: ${of.filter(([, n]) => n).map(([v, n]) => `${n} ${v}`).join(", ")}`).join("; ")}.`);
  place.append(element("figure", {}, element("figcaption", {}, title, " ", offerDrawing(chart, "verdicts", title)), chart));
  const draw = () => {
    const { width } = chart.getBoundingClientRect();
    if (!width) return;
    const root = svg("svg", { viewBox: `0 0 ${width} ${counts.length * 52}` });
    counts.forEach(({ name, of }, j) => {
      const y = j * 52;
      root.append(svg("text", { x: 0, y: y + 13, class: "head" }, capital(name)));
      let x = 0;
      for (const [verdict, number] of of) {
        if (!number) continue;
        const w = (width * number) / data.claims.length, { kind, sign } = VERDICTS[verdict];
        const part = svg("rect", { class: `part ${kind}`, x: x + 0.5, y: y + 19, width: w - 1, height: 26, rx: 3 });
        part.append(svg("title", {}, `${number} ${verdict}`));
        root.append(part);
        root.append(svg("text", { class: "on", x: x + w / 2, y: y + 36, "text-anchor": "middle" }, w > 30 ? `${sign} ${number}` : w > 13 ? sign : ""));
        x += w;
      }
    });
    chart.replaceChildren(root);
  };
  new ResizeObserver(draw).observe(chart);
  const shown = Object.entries(VERDICTS).filter(([v]) => counts.some(({ of }) => of.some(([w, n]) => w === v && n)));
  place.append(element("p", { class: "key" }, ...shown.map(([verdict]) => element("span", {}, tile(verdict), ` ${verdict}`))));
}
