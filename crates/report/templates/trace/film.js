// The trace page, 4 of 6: the movement of the head as a film of the visible span.
const Film = (function () {
  "use strict";
  const M = Model;
  const HEIGHT = 250;
  const LINE = 92;
  // The duration of the film in seconds, or its slowdown.
  const SPEEDS = [["span in 10 s", 10], ["span in 30 s", 30], ["span in 2 min", 120], ["as it was", 0, 1], ["10 times slower", 0, 10], ["100 times slower", 0, 100],
    ["1,000 times slower", 0, 1000], ["10,000 times slower", 0, 10000]];

  // With the next frame. A browser without frames (a hidden tab, or one that only prints) is drawn as well.
  function soon(draw) {
    let done = false;
    const once = (time) => {
      if (done) return;
      done = true;
      draw(time);
    };
    requestAnimationFrame(once);
    setTimeout(() => once(performance.now()), 150);
  }

  // The length of the trail as a share of the span.
  const TRAIL = 0.12;

  function draw(node, view, t, now) {
    const chart = Draw.canvasOf(node, HEIGHT);
    const { ctx, width } = chart;
    const [low, high] = view.sectors;
    const [a, b] = [24, width - 24];
    const x = (sector) => a + ((sector - low) / (high - low)) * (b - a);
    ctx.font = view.font;
    disk(ctx, a, b, x, low, high, t);
    const trail = (view.to - view.from) * TRAIL;
    if (view.detail && view.inView <= Draw.DOTS_MAX) fromRequests(ctx, x, view, t, now, trail);
    else fromPicture(ctx, x, view, t, now, trail);
  }

  function disk(ctx, a, b, x, low, high, t) {
    ctx.fillStyle = t.grid;
    ctx.fillRect(a - 8, LINE - 7, b - a + 16, 14);
    ctx.fillStyle = t.quiet;
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "right";
    ctx.fillText("sector", b, HEIGHT - 22);
    ctx.textAlign = "center";
    for (const sector of hoistwayScales.ticks(low, high, Math.max(2, (b - a) / 150))) {
      ctx.fillRect(x(sector), LINE - 7, 1, 14);
      ctx.fillText(Draw.sectorText(sector), x(sector), HEIGHT - 5);
    }
  }

  function fromRequests(ctx, x, view, t, now, trail) {
    const { detail } = view;
    const waiting = new Map();
    let last = -1;
    for (let i = 0; i < detail.n; i += 1) {
      if (detail.start[i] > now) break;
      if (!view.isChosen[detail.lane[i]] || !detail.bytes[i]) continue;
      const begun = Draw.issued(detail, i);
      const place = x(detail.sector[i]);
      ctx.fillStyle = t.lanes[detail.lane[i]];
      if (begun > now) {
        // Requests that wait at one position are stacked.
        const pixel = Math.round(place / 3);
        const above = waiting.get(pixel) || 0;
        waiting.set(pixel, above + 1);
        if (above < 14) ctx.fillRect(pixel * 3 - 1, LINE - 16 - above * 5, 3, 4);
        continue;
      }
      if (last < 0 || begun >= Draw.issued(detail, last)) last = i;
      if (detail.end[i] > now) ctx.fillRect(place - 2, LINE - 7, Math.max(4, x(detail.sector[i] + detail.bytes[i] / 512) - place), 14);
      const age = now - begun;
      if (age > trail) continue;
      ctx.globalAlpha = 1 - 0.85 * (age / trail);
      ctx.fillRect(place - 1.5, LINE + 14 + (age / trail) * (HEIGHT - LINE - 40), 3, 3);
      ctx.globalAlpha = 1;
    }
    if (last >= 0) mark(ctx, x(headAt(detail, last, now)), t);
  }

  // The head moves from the first to the last sector of a request during its service.
  function headAt(detail, i, now) {
    const begun = Draw.issued(detail, i);
    const part = detail.end[i] > begun ? Math.min(1, (now - begun) / (detail.end[i] - begun)) : 1;
    return detail.sector[i] + (part * detail.bytes[i]) / 512;
  }

  function mark(ctx, place, t) {
    ctx.fillStyle = t.ink;
    ctx.beginPath();
    ctx.moveTo(place, LINE - 8);
    ctx.lineTo(place - 6, LINE - 18);
    ctx.lineTo(place + 6, LINE - 18);
    ctx.fill();
    ctx.fillRect(place - 1, LINE - 8, 2, 16);
  }

  function fromPicture(ctx, x, view, t, now, trail) {
    const { counts, whose, columnNs, columns, rows, first, row } = view.places();
    const column = Math.min(columns - 1, Math.floor(now / columnNs));
    const back = Math.max(1, Math.min(24, Math.ceil(trail / columnNs)));
    let most = 1;
    for (let k = 0; k < rows; k += 1) most = Math.max(most, counts[column * rows + k]);
    let [sum, weight] = [0, 0];
    for (let age = back; age >= 0; age -= 1) {
      const from = (column - age) * rows;
      if (from < 0) continue;
      for (let k = 0; k < rows; k += 1) {
        const count = counts[from + k];
        if (!count) continue;
        const place = x(first + k * row);
        const width = Math.max(2, x(first + (k + 1) * row) - place);
        ctx.fillStyle = t.lanes[whose[from + k]];
        ctx.globalAlpha = Math.min(1, 0.25 + count / most) * (1 - (0.8 * age) / (back + 1));
        if (age === 0) {
          ctx.fillRect(place, LINE - 7, width, 14);
          sum += (first + (k + 0.5) * row) * count;
          weight += count;
        } else ctx.fillRect(place, LINE + 12 + (age / back) * (HEIGHT - LINE - 40), width, Math.max(2, (HEIGHT - LINE - 40) / back));
      }
    }
    ctx.globalAlpha = 1;
    if (weight) mark(ctx, x(sum / weight), t);
  }

  // The player: `shown` is called with the time whenever it changes.
  class Player {
    constructor(nodes, viewNow, shown) {
      Object.assign(this, { nodes, viewNow, shown, moment: null, playing: false });
      SPEEDS.forEach(([name], i) => nodes.speed.add(new Option(name, String(i))));
      nodes.play.addEventListener("click", () => this.toggle());
      nodes.scrub.addEventListener("input", () => {
        const view = viewNow();
        this.seek(view.from + (Number(nodes.scrub.value) / Number(nodes.scrub.max)) * (view.to - view.from));
      });
    }

    // The time, limited to the visible span.
    now() {
      const view = this.viewNow();
      if (this.moment === null || this.moment < view.from || this.moment > view.to) this.moment = view.from + (view.to - view.from) * (this.moment === null ? 0.5 : 0);
      return this.moment;
    }

    seek(moment) {
      this.moment = moment;
      this.notify();
    }

    notify() {
      const view = this.viewNow();
      this.nodes.scrub.value = String(Math.round(((this.now() - view.from) / (view.to - view.from)) * Number(this.nodes.scrub.max)));
      this.nodes.time.textContent = M.moment(this.now(), view.to - view.from);
      this.shown(this.now());
    }

    toggle() {
      this.playing = !this.playing;
      this.nodes.play.textContent = this.playing ? "Pause" : "Play";
      this.nodes.play.setAttribute("aria-pressed", String(this.playing));
      if (!this.playing) return;
      if (this.now() >= this.viewNow().to) this.moment = this.viewNow().from;
      this.before = null;
      soon((time) => this.frame(time));
    }

    frame(time) {
      if (!this.playing) return;
      const view = this.viewNow();
      const [, seconds, slower] = SPEEDS[Number(this.nodes.speed.value)] || SPEEDS[0];
      const passed = this.before === null ? 0 : Math.min(100, time - this.before);
      this.before = time;
      this.moment = this.now() + (seconds ? (passed / 1000 / seconds) * (view.to - view.from) : (passed * 1e6) / slower);
      if (this.moment >= view.to) {
        this.moment = view.to;
        this.toggle();
      }
      this.notify();
      soon((next) => this.frame(next));
    }
  }

  return { draw, soon, Player };
})();
