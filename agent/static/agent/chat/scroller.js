// Keeps the newest words in sight, unless the reader has gone up to read.

const NEAR = 60;

export class Scroller {
  constructor(log, latest) {
    this.log = log;
    this.latest = latest;
    this.sticks = true;
    this.top = 0;
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

  // Only who goes up lets go: an event of our own scrolling may come when more has been said since.
  #look() {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    const near = scrollHeight - scrollTop - clientHeight < NEAR;
    this.sticks = near || (this.sticks && scrollTop >= this.top);
    this.top = scrollTop;
    this.latest.hidden = this.sticks;
  }

  #grown() {
    if (this.sticks) this.log.scrollTop = this.log.scrollHeight;
    else this.#look();
  }
}
