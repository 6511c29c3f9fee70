// The part of the time axis that several drawings show together.

export class Viewport {
  from = 0;
  to: number;
  private readonly listeners: (() => void)[] = [];

  constructor(readonly end: number) {
    this.to = end;
  }

  listen(draw: () => void): void {
    this.listeners.push(draw);
  }

  set(from: number, to: number): void {
    const least = this.end * 1e-7, size = Math.min(this.end, Math.max(least, to - from));
    this.from = Math.min(Math.max(0, from), this.end - size);
    this.to = this.from + size;
    for (const draw of this.listeners) draw();
  }

  all(): void {
    this.set(0, this.end);
  }

  // Zooms by a factor around a time that stays where it is.
  zoom(factor: number, around = (this.from + this.to) / 2): void {
    this.set(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  pan(share: number): void {
    const shift = share * (this.to - this.from);
    this.set(this.from + shift, this.to + shift);
  }

  // Moves, and widens if it must, so that a span is seen.
  show(start: number, end: number): void {
    const size = Math.max(this.to - this.from, 1.5 * (end - start));
    if (start >= this.from && end <= this.to) this.set(this.from, this.to);
    else this.set((start + end) / 2 - size / 2, (start + end) / 2 + size / 2);
  }
}
