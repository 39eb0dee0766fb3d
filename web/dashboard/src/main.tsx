// The page of a dashboard: every panel at its place, drawn with Grafana's components. `window.check` says what is wrong with the page.

import { createTheme, type DataFrame, type GrafanaTheme2 } from "@grafana/data";
import { GlobalStyles, PanelChrome, PortalContainer, ThemeContext } from "@grafana/ui";
import { Component, type ReactElement, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import "@fontsource/inter/latin-400.css";
import "@fontsource/inter/latin-500.css";
import { PHONE, check, type Drawn } from "./check";
import { unknown } from "./fields";
import { framesOf } from "./frames";
import "./icons";
import { TYPES } from "./panels";
import type { Dashboard, Panel, Recorded } from "./types";

/** Grafana's grid: 24 columns, and rows of 30 px with 8 px between them. */
const [COLUMNS, ROW, GAP] = [24, 30, 8];

function read<T>(id: string): T {
  return JSON.parse(document.getElementById(id)!.textContent!) as T;
}

/** Shows what a component threw in its place. */
class Boundary extends Component<{ children: ReactNode }, { problem?: string }> {
  state: { problem?: string } = {};
  static getDerivedStateFromError = (error: unknown) => ({ problem: String(error) });
  render = () => (this.state.problem ? <p data-problem>{this.state.problem}</p> : this.props.children);
}

function Contents({ panel, frames, recorded, width, height }: { panel: Panel; frames: DataFrame[]; recorded: Recorded; width: number; height: number }): ReactElement {
  const Type = TYPES[panel.type];
  if (!Type) return <p data-problem>{`the type ${panel.type} is not known`}</p>;
  if (!frames.some((frame) => frame.length)) return <div data-empty className="empty">No data</div>;
  return <Type panel={panel} frames={frames} recorded={recorded} width={width} height={height} />;
}

function Grid({ drawn, recorded, theme }: { drawn: Drawn[]; recorded: Recorded; theme: GrafanaTheme2 }): ReactElement {
  const page = document.documentElement.clientWidth - 2 * 16;
  const isPhone = innerWidth < PHONE;
  const column = (page - (COLUMNS - 1) * GAP) / COLUMNS;
  const size = (cells: number, cell: number) => cells * (cell + GAP) - GAP;
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <main className={isPhone ? "phone" : "grid"} style={{ height: isPhone ? undefined : size(Math.max(...drawn.map(({ panel: { gridPos } }) => gridPos.y + gridPos.h)), ROW) }}>
        {drawn.map(({ panel, frames }) => {
          const { x, y, w, h } = panel.gridPos;
          const place = isPhone ? {} : { left: x * (column + GAP), top: y * (ROW + GAP) };
          const [width, height] = [isPhone ? page : size(w, column), size(h, ROW)];
          if (panel.type === "row") return <h2 key={panel.id} className="heading" style={{ ...place, height }}>{panel.title}</h2>;
          return (
            <div key={panel.id} className="panel" data-panel={panel.id} style={{ ...place, width, height }}>
              <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
                {(inner, tall) => <Boundary><Contents panel={panel} frames={frames} recorded={recorded} width={inner} height={tall} /></Boundary>}
              </PanelChrome>
            </div>
          );
        })}
      </main>
      <PortalContainer />
    </ThemeContext.Provider>
  );
}

/** Makes the frames of a panel. A panel that Grafana's code refuses has none. */
async function prepare(panel: Panel, recorded: Recorded, theme: GrafanaTheme2): Promise<Drawn> {
  if (panel.type === "row") return { panel, frames: [], problems: [] };
  const problems = unknown(panel);
  if (problems.length) return { panel, frames: [], problems };
  try {
    return { panel, frames: await framesOf(panel, recorded, theme), problems };
  } catch (error) {
    return { panel, frames: [], problems: [String(error)] };
  }
}

async function show(): Promise<void> {
  const [{ panels }, recorded] = [read<Dashboard>("dashboard"), read<Recorded>("answers")];
  const mode = new URL(location.href).searchParams.get("theme") === "dark" ? "dark" : "light";
  const theme = createTheme({ colors: { mode } });
  document.body.style.background = theme.colors.background.canvas;
  document.body.style.color = theme.colors.text.primary;
  const drawn = await Promise.all(panels.map((panel) => prepare(panel, recorded, theme)));
  await Promise.all(["400 12px Inter", "500 12px Inter"].map((font) => document.fonts.load(font)));
  createRoot(document.getElementById("page")!).render(<Grid drawn={drawn} recorded={recorded} theme={theme} />);
  (window as any).check = () => check(drawn, recorded);
}

void show();
