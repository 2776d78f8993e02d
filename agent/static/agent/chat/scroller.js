// Keeps the newest words in sight, unless the reader has gone up to read.

const NEAR = 60;

export class Scroller {
  constructor(log, latest) {
    this.log = log;
    this.latest = latest;
    this.sticks = true;
    log.addEventListener("scroll", () => this.#look(), { passive: true });
    latest.addEventListener("click", () => {
      this.toEnd();
      log.focus();
    });
    new ResizeObserver(() => this.#grown()).observe(log.firstElementChild);
    new ResizeObserver(() => this.#grown()).observe(log);
  }

  toEnd() {
    this.sticks = true;
    this.log.scrollTop = this.log.scrollHeight;
    this.latest.hidden = true;
  }

  #look() {
    this.sticks = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR;
    this.latest.hidden = this.sticks;
  }

  #grown() {
    if (this.sticks) this.log.scrollTop = this.log.scrollHeight;
    else this.#look();
  }
}
