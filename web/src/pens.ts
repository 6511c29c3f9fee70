// What the timeline draws with: a canvas, or a file of SVG.

export interface Pen {
  clear(width: number, height: number, shade: string): void;
  box(x: number, y: number, width: number, height: number, shade: string, opacity?: number): void;
  frame(x: number, y: number, width: number, height: number, shade: string, thickness: number): void;
  line(x1: number, y1: number, x2: number, y2: number, shade: string, thickness: number): void;
  text(text: string, x: number, y: number, shade: string, size: number, room: number): void;
}

const fit = (text: string, size: number, room: number): string => {
  const most = Math.floor(room / (0.58 * size));
  return text.length <= most ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`;
};

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D) {
    context.textBaseline = "middle";
  }
  clear(width: number, height: number, shade: string): void {
    this.box(0, 0, width, height, shade);
  }
  box(x: number, y: number, width: number, height: number, shade: string, opacity = 1): void {
    this.context.globalAlpha = opacity;
    this.context.fillStyle = shade;
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }
  frame(x: number, y: number, width: number, height: number, shade: string, thickness: number): void {
    this.context.strokeStyle = shade;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x, y, width, height);
  }
  line(x1: number, y1: number, x2: number, y2: number, shade: string, thickness: number): void {
    this.context.strokeStyle = shade;
    this.context.lineWidth = thickness;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }
  text(text: string, x: number, y: number, shade: string, size: number, room: number): void {
    this.context.font = `${size}px system-ui, sans-serif`;
    this.context.fillStyle = shade;
    this.context.fillText(fit(text, size, room), x, y);
  }
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private size = "";
  clear(width: number, height: number, shade: string): void {
    this.size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
    this.box(0, 0, width, height, shade);
  }
  box(x: number, y: number, width: number, height: number, shade: string, opacity = 1): void {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${height}" fill="${shade}" opacity="${opacity}"/>`);
  }
  frame(x: number, y: number, width: number, height: number, shade: string, thickness: number): void {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${height}" fill="none" stroke="${shade}" stroke-width="${thickness}"/>`);
  }
  line(x1: number, y1: number, x2: number, y2: number, shade: string, thickness: number): void {
    this.parts.push(`<path d="M${x1.toFixed(2)} ${y1}L${x2.toFixed(2)} ${y2}" stroke="${shade}" stroke-width="${thickness}"/>`);
  }
  text(text: string, x: number, y: number, shade: string, size: number, room: number): void {
    this.parts.push(`<text x="${x.toFixed(2)}" y="${(y + size / 3).toFixed(2)}" fill="${shade}" font-size="${size}">${escaped(fit(text, size, room))}</text>`);
  }
  document(): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" ${this.size}>${this.parts.join("\n")}</svg>\n`;
  }
}
