// The menu of narrow windows, and the search. The index is a script that is loaded when the search is first used.
(function () {
  "use strict";
  const root = document.currentScript.dataset.root;
  const LIMIT = 12;

  const menu = document.getElementById("site-menu");
  const navigation = document.getElementById("site-navigation");
  menu.addEventListener("click", () => {
    const open = navigation.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  });
  const current = navigation.querySelector("[aria-current]");
  if (current) navigation.scrollTop = Math.max(0, current.offsetTop - navigation.clientHeight / 2);
  if (matchMedia("(max-width: 1439px)").matches) {
    for (const list of document.querySelectorAll(".here details")) list.open = false;
  }

  const field = document.getElementById("site-search");
  const list = document.getElementById("site-results");
  const status = document.getElementById("site-found");
  let index = null;
  let waiting = false;
  let chosen = -1;

  globalThis.hoistwaySearchIndex = (data) => {
    index = { sections: data.sections, words: data.words.split(" "), places: data.places };
    show();
  };
  function load() {
    if (waiting) return;
    waiting = true;
    const script = document.createElement("script");
    script.src = root + "assets/search-index.js";
    document.head.append(script);
  }

  // The first word of the index that is not before `word`.
  function lowest(word) {
    let [low, high] = [0, index.words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (index.words[middle] < word) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The weight of each section for a word and its plural; other words that begin with it count less.
  function weights(word) {
    const found = new Map();
    for (let at = lowest(word); at < index.words.length && index.words[at].startsWith(word); at += 1) {
      const factor = index.words[at] === word || index.words[at] === `${word}s` ? 1 : 0.4;
      const places = index.places[at];
      const rarity = Math.log(1 + index.sections.length / (places.length / 2));
      let section = 0;
      for (let i = 0; i < places.length; i += 2) {
        section += places[i];
        const weight = places[i + 1] * factor * rarity;
        if (weight > (found.get(section) || 0)) found.set(section, weight);
      }
    }
    return found;
  }

  function search(text) {
    const words = text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u).filter((word) => word.length > 1);
    if (words.length === 0) return [];
    let all = null;
    for (const word of words) {
      const found = weights(word);
      if (all === null) all = found;
      else for (const [section, weight] of all) found.has(section) ? all.set(section, weight + found.get(section)) : all.delete(section);
    }
    return [...all].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, LIMIT).map(([section]) => index.sections[section]);
  }

  function line(tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }

  function show() {
    const text = field.value.trim();
    list.replaceChildren();
    choose(-1);
    const open = text.length > 1 && index !== null;
    list.hidden = !open;
    field.setAttribute("aria-expanded", String(open));
    if (!open) { status.textContent = ""; return; }
    const found = search(text);
    found.forEach(([address, title, heading, excerpt], number) => {
      const item = document.createElement("li");
      item.id = `result-${number}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.dataset.address = root + address;
      item.append(line("b", heading ? `${title}: ${heading}` : title), line("small", excerpt));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); go(item); });
      list.append(item);
    });
    if (found.length === 0) {
      const none = line("li", `No page has "${text}".`);
      none.className = "none";
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      list.append(none);
    }
    status.textContent = found.length === 1 ? "1 page found" : `${found.length} pages found`;
  }

  function choose(number) {
    const items = [...list.querySelectorAll("[data-address]")];
    chosen = items.length === 0 ? -1 : Math.max(-1, Math.min(number, items.length - 1));
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    if (chosen >= 0) {
      field.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  }

  function go(item) {
    location.href = item.dataset.address;
    close();
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  field.addEventListener("focus", load);
  field.addEventListener("input", () => { load(); if (index) show(); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden && index) show();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (list.hidden) field.value = "";
      close();
      event.preventDefault();
    }
  });
  document.getElementById("site-search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const items = list.querySelectorAll("[data-address]");
    if (!list.hidden && items.length > 0) go(items[Math.max(0, chosen)]);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
})();
