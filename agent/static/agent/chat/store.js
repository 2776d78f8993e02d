// What the page knows, in one place; whoever shows a part of it is told when it changes.

export class Store {
  #values;
  #listeners = new Map();

  constructor(values) {
    this.#values = { ...values };
  }

  get(name) {
    return this.#values[name];
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => this.#values[name] !== changes[name]);
    Object.assign(this.#values, changes);
    for (const name of changed) {
      for (const listener of this.#listeners.get(name) ?? []) listener(this.#values[name]);
    }
  }

  /** Call now and at each change of one of these names. */
  show(names, listener) {
    for (const name of names) {
      const known = this.#listeners.get(name) ?? [];
      this.#listeners.set(name, [...known, listener]);
    }
    listener();
  }
}
