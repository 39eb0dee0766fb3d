// Appended to the page of a trace by its browser test: waits until it is drawn, works its controls, compares what it says with its data, and writes what it
// finds into the document, where --dump-dom shows it.
(async function () {
  const failures = [];
  let checks = 0;
  const check = (holds, says) => {
    checks += 1;
    if (!holds) failures.push(says);
  };
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const byId = (id) => document.getElementById(id);
  const rootData = document.documentElement.dataset;
  const head = JSON.parse(byId("hoistway-head").textContent);
  const settled = async () => {
    for (let i = 0; i < 600; i += 1) {
      await pause(20);
      if ( rootData.ready === "true" && rootData.waits === "0") break;
    }
  };
  const key = async (name) => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    await settled();
  };
  const ink = (canvas) => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const ctx = copy.getContext("2d", { willReadFrequently: true });
    ctx.drawImage(canvas, 0, 0);
    const { data } = ctx.getImageData(0, 0, copy.width, copy.height);
    let drawn = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i]) drawn += 1;
    return drawn;
  };
  const requestsInTable = () => Array.from(byId("figures").tBodies[0].rows).reduce((sum, row) => sum + Number(row.cells[1].textContent.replace(/,/g, "")), 0);
  const count = head.lanes.reduce((sum, lane) => sum + lane.requests, 0);

  async function whole() {
    check(requestsInTable() === count, `the table has ${requestsInTable()} of ${count} requests`);
    const total = byId("figures").tFoot.rows[0];
    const heads = Array.from(byId("figures").tHead.rows[0].cells, (cell) => cell);
    check(heads.length === 14 && heads.slice(5).every((cell) => cell.title), "a column of latency or of a layer has no explanation");
    check(heads[9].title === "wait for a request: share of the requests' time, from submission to the allocation of a request", heads[9].title);
    check(head.lanes.length < 2 || Number(total.cells[1].textContent.replace(/,/g, "")) === count, "the table's last line is of all requests");
    for (const canvas of document.querySelectorAll("canvas")) check(ink(canvas) > 100, `${canvas.dataset.chart || canvas.id} is empty`);
    check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} px wide in ${innerWidth}`);
  }

  async function zooming() {
    const { state } = Page;
    await key("+");
    check(Math.abs(state.to - state.from - head.end_ns / 2) < 2, "plus shows a half");
    await key("ArrowRight");
    await key("ArrowRight");
    check(Math.abs(state.to - head.end_ns) < 2, `right goes a quarter on each: ${state.to} of ${head.end_ns}`);
    check(requestsInTable() < count, "the table follows the span");
    for (let i = 0; i < 3; i += 1) await key("Backspace");
    check(state.from === 0 && state.to === head.end_ns, "three steps back show the whole");
    await key("+");
    await key("0");
    check(state.to - state.from === head.end_ns, "0 shows the whole");
  }

  async function processes() {
    const button = document.querySelector("[data-pid]");
    button.click();
    await settled();
    check(Page.view().chosen.length === 1, "a click picks one process");
    check(byId("figures").querySelectorAll(".unchosen").length === head.lanes.length - 1, "the others are grey in the table");
    button.click();
    await settled();
    check(Page.view().chosen.length === head.lanes.length, "another click picks all");
  }

  async function oneRequest() {
    if (!Page.view().detail) return;
    check(Page.view().inView === count, `${Page.view().inView} of ${count} requests are joined`);
    await key("n");
    const card = byId("card");
    check(!card.hidden, "n opens a request");
    const text = card.textContent;
    for (const says of ["Q2G", "500 ns", "I2D", "2.00 µs", "D2C", "5.00 µs", "8.00 µs"]) check(text.includes(says), `the card does not say ${says}: ${text}`);
    check(text.includes("1 bio was merged"), "the card lists the merged bios");
    const first = Page.state.request.at;
    await key("n");
    check(Page.state.request.at !== first, "n goes on");
    await key("p");
    check(Page.state.request.at === first, "p goes back");
    await key("Escape");
    check(card.hidden, "Escape closes it");
    location.hash = "#t=0.0001-0.0002&pid=100";
    await settled();
    check(Math.round(Page.state.from) === 100000 && Math.round(Page.state.to) === 200000 && Page.view().chosen.length === 1, "an address is followed");
    check(Page.view().bars === true, "few requests are bars");
    const canvas = document.querySelector('[data-chart="lanes"]');
    const before = ink(canvas);
    check(before > 100, "the lanes are drawn");
    location.hash = "#";
    await settled();
  }

  async function film() {
    const before = byId("film-time").textContent;
    byId("play").click();
    check(byId("play").textContent === "Pause", "the film plays");
    for (let i = 0; i < 300 && byId("film-time").textContent === before; i += 1) await pause(50);
    if (byId("play").textContent === "Pause") byId("play").click();
    check(byId("play").textContent === "Play", "the film stops");
    check(byId("film-time").textContent !== before, `the film stands at ${before}`);
  }

  async function theme() {
    const paper = () => getComputedStyle(document.querySelector("figure")).backgroundColor;
    const before = paper();
    hoistwayTheme.choose(hoistwayTheme.name() === "dark" ? "light" : "dark");
    await settled();
    check(paper() !== before, "the theme changes");
    check(byId("theme").value === document.documentElement.dataset.theme, "the control of the theme");
    hoistwayTheme.choose("system");
    await settled();
  }

  try {
    await settled();
    check(rootData.ready === "true", "the page is drawn");
    if (count) {
      await whole();
      await zooming();
      await processes();
      await oneRequest();
      await film();
    }
    await theme();
  } catch (error) {
    failures.push(`${error.message} ${error.stack}`);
  }
  const pre = document.createElement("pre");
  pre.id = "browser-check";
  pre.textContent = failures.length ? failures.join("\n") : `PASSED ${checks} checks`;
  document.body.append(pre);
})();
