// @ts-check
// The legend of a chart, or of several charts with the same series: a button for each series. The owner of the legend hides
// the series in its charts.

import { cssColour } from "./draw.js";

/** @typedef {import("./draw.js").Colour} Colour */
/** @typedef {string | number} Key */
/** @typedef {{ key: Key, name: string, colour: Colour }} LegendEntry */

/**
 * An HTML element with a class and a text.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} className
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function make(name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

export class Legend {
  /**
   * @param {HTMLElement} node the element that holds the buttons
   * @param {(hidden: Set<Key>) => void} onHidden called with the keys that are hidden after a click; it calls `show`
   * @param {boolean} [all] true for a button that shows all series again
   */
  constructor(node, onHidden, all = false) {
    this.node = node;
    this.onHidden = onHidden;
    this.all = all;
    /** @type {LegendEntry[]} */
    this.entries = [];
    /** @type {Set<Key>} */
    this.hidden = new Set();
    node.classList.add("legend");
    node.setAttribute("role", "group");
    node.addEventListener("click", (event) => {
      const button = this.buttonOf(event);
      if (!button) return;
      if (!("key" in button.dataset)) this.onHidden(new Set());
      else if (event.shiftKey) this.only(button);
      else this.toggle(button);
    });
    node.addEventListener("dblclick", (event) => {
      const button = this.buttonOf(event);
      if (button && "key" in button.dataset) this.only(button);
    });
  }

  /**
   * Shows a button for each entry; those of hidden series are not pressed. Entries of one key are one.
   * @param {string} label the accessible name
   * @param {ReadonlyArray<LegendEntry>} entries
   * @param {ReadonlySet<Key>} hidden
   */
  show(label, entries, hidden) {
    const last = JSON.stringify(this.entries);
    this.entries = Array.from(new Map(entries.map(({ key, name, colour }) => [key, { key, name, colour }])).values());
    this.hidden = new Set(hidden);
    this.node.setAttribute("aria-label", label);
    if (JSON.stringify(this.entries) !== last) this.fill();
    for (const button of this.buttons()) {
      const entry = this.entryOf(button);
      if (entry) button.setAttribute("aria-pressed", String(!this.hidden.has(entry.key)));
    }
  }

  fill() {
    const active = /** @type {HTMLElement | null} */ (document.activeElement);
    const had = active && this.node.contains(active) ? active.dataset.key : undefined;
    const buttons = this.entries.map(({ key, name, colour }) => {
      const button = make("button", "");
      button.type = "button";
      button.dataset.key = String(key);
      button.title = "Click: hide or show. Shift-click or double click: only this one.";
      const square = make("i", "");
      square.setAttribute("aria-hidden", "true");
      for (const theme of ["--l", "--d"]) square.style.setProperty(theme, cssColour(colour));
      button.append(square, name);
      return button;
    });
    if (this.all) {
      const button = make("button", "all", "all");
      button.type = "button";
      button.dataset.all = "";
      buttons.push(button);
    }
    this.node.replaceChildren(...buttons);
    if (had !== undefined) buttons.find((button) => button.dataset.key === had)?.focus();
  }

  buttons() {
    return Array.from(this.node.querySelectorAll("button"));
  }

  /** @param {Event} event */
  buttonOf(event) {
    return /** @type {HTMLElement} */ (event.target).closest("button");
  }

  /** @param {HTMLElement} button */
  entryOf(button) {
    return this.entries.find((entry) => String(entry.key) === button.dataset.key);
  }

  /** @param {HTMLElement} button */
  toggle(button) {
    const entry = this.entryOf(button);
    const hidden = new Set(this.hidden);
    if (entry && !hidden.delete(entry.key)) hidden.add(entry.key);
    this.onHidden(hidden);
  }

  /** @param {HTMLElement} button */
  only(button) {
    const kept = this.entryOf(button);
    this.onHidden(new Set(this.entries.filter((entry) => entry !== kept).map((entry) => entry.key)));
  }
}
