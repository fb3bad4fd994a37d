/* Tables, files, and all together */

function showTables() {
  for (const place of document.querySelectorAll("[data-table]")) {
    const { header, rows, groups, words } = data.tables[place.dataset.table];
    place.append(makeTable(header, rows, groups, words));
  }
  const agreement = data.tables.agreement;
  byId("agreement-all").append(makeTable(agreement.header.filter((_, i) => i !== 2), agreement.rows
    .filter((row) => row[2] === "all" && !row[3].startsWith("0 ")).map((row) => row.filter((_, i) => i !== 2)), [], 2));
  const minutes = sum(data.cells.map((c) => c.coreMinutes));
  byId("cost-summary").textContent = `Cost: ${(minutes / 60).toFixed(1)} core-hours for ${data.cells.length} cells of ten seeds; `
    + `climlab and PyTorch would need ${data.publishedCoreHours.toFixed(0)}. Each of them`;
  const columns = [...new Set(data.cells.map((c) => `${c.algo} ${c.preset}`))].sort();
  const lines = [...new Set(data.cells.map(experiment))].sort();
  byId("cell-table").append(makeTable(["", ...columns.map((c) => c.replace(/^\w+/, label))], lines.map((line) => [line, ...columns.map((column) => {
    const cell = data.cells.find((c) => experiment(c) === line && `${c.algo} ${c.preset}` === column);
    if (!cell) return "–";
    const button = element("button", { type: "button", title: cell.name }, `${cell.globe.toFixed(2)}, ${fixed(cell.share, 0)} %`);
    button.addEventListener("click", () => openCell(cell.name));
    return element("td", {}, button);
  })])));
  byId("footer").textContent = `Made by fedrain benchmark report. ${Object.entries(data.versions).map(([k, v]) => `${k} ${v}`).join(", ")}.`;
}

const csv = (rows) => rows.map((row) => row.map((v) => (/[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v)).join(",")).join("\n") + "\n";
const FILES = {
  "skill.csv": () => csv([
    ["cell", ...KEYS, "seed", ...data.bands.map((band) => `areaWRMSE ${band} (K)`), "areaWRMSE globe (K)"],
    ...data.cells.flatMap((c) => c.numbers.map((number, i) => [c.name, ...KEYS.map((k) => c[k]), number, ...c.seeds[i], c.globes[i]])),
  ]),
  "claims.csv": () => csv([
    ["claim", "decided by", ...COLUMNS.flatMap(([, name]) => [name, `${name}: evidence`])],
    ...data.claims.map((c) => [c.statement, c.test, ...COLUMNS.flatMap(([column]) => findingOf(c, column))]),
  ]),
  "report.json": () => JSON.stringify({ ...data, blocks: undefined }),
};

function offerFiles() {
  for (const button of document.querySelectorAll("[data-file]"))
    button.addEventListener("click", () => {
      const name = button.dataset.file;
      save(name, FILES[name](), name.endsWith("json") ? "application/json" : "text/csv");
    });
}

async function start() {
  makeChoice(byId("choice"), "cell");
  makeChoice(byId("choice-other"), "other");
  showFederation();
  showAlgorithm();
  showLimit();
  showReproduced();
  showClaims();
  showTables();
  offerFiles();
  byId("step").max = data.steps;
  Object.assign(state, readAddress());
  try {
    units = await unpackSeries();
  } catch (error) {
    byId("episode-error").textContent = `This browser cannot unpack the episodes (${error.message}).`;
    byId("play").disabled = byId("step").disabled = true;
  }
  const again = () => showEpisode(find(state.cell), state.other && find(state.other));
  byId("step").addEventListener("input", () => { state.step = Number(byId("step").value); again(); });
  byId("step").addEventListener("change", writeAddress);
  byId("play").addEventListener("click", play);
  byId("compare").addEventListener("click", () => {
    const beside = { ...state.cell, scheme: state.cell.scheme === "nofed" ? "fed05" : "nofed" };
    state.other = find(beside) && find(beside).name !== state.cell.name ? beside : parts(data.cells.find((c) => c.name !== state.cell.name) ?? data.cells[0]);
    show();
    writeAddress();
    byId("choice-other").querySelector("select").focus();
  });
  for (const link of document.querySelectorAll("nav a"))  // the address keeps what is chosen
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const place = document.querySelector(link.getAttribute("href"));
      place.scrollIntoView();
      place.setAttribute("tabindex", "-1");
      place.focus({ preventScroll: true });
    });
  addEventListener("hashchange", () => { Object.assign(state, readAddress()); show(); });
  new ResizeObserver(() => { const cell = find(state.cell); if (cell) showSkill(cell, state.other && find(state.other)); }).observe(byId("chart-skill"));
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not(.verdict):not([open])")) { part.open = true; opened.push(part); }
  });
  addEventListener("afterprint", () => { for (const part of opened.splice(0)) part.open = false; });
  show();
  document.body.dataset.ready = "true";
}

start();
