import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'

import './chart.css'

export type Line = { name: string; colour: string; values: readonly (number | null)[] }
type ChartProps = { label: string; at: readonly number[]; lines: readonly Line[] }

const HEIGHT_PX = 220
const AXIS = '--quiet'
const GRID = '--line'

/** Lines over time, with cursor and zoom. The library is loaded with the first. `at` in ms. */
export function Chart({ label, at, lines }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = frame
    let plot: uPlot | undefined
    const fit = new ResizeObserver(() => current && plot?.setSize({ width: current.clientWidth, height: HEIGHT_PX }))
    const stop = new AbortController()
    const draw = async () => {
      const Plot = await load()
      if (stop.signal.aborted || !current) return
      plot = new Plot(optionsOf(current, lines), [at.map((ms) => ms / 1000), ...lines.map(({ values }) => Array.from(values))], current)
      fit.observe(current)
    }
    void draw()
    return () => {
      stop.abort()
      fit.disconnect()
      plot?.destroy()
    }
  }, [at, lines])
  return <div class="chart" ref={frame} role="img" aria-label={label} />
}

async function load() {
  const [{ default: Plot }] = await Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')])
  return Plot
}

function optionsOf(frame: HTMLElement, lines: readonly Line[]): uPlot.Options {
  const styles = getComputedStyle(frame)
  // A canvas does not know `light-dark()`, so that colours are read from an element that has them.
  const colour = (name: string) => {
    frame.style.color = `var(${name})`
    const { color } = styles
    frame.style.color = ''
    return color
  }
  const axis = { stroke: colour(AXIS), grid: { stroke: colour(GRID), width: 1 }, ticks: { stroke: colour(GRID), width: 1 } }
  return {
    width: frame.clientWidth,
    height: HEIGHT_PX,
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [axis, { ...axis, size: 60 }],
    series: [
      {},
      ...lines.map(({ name, colour: of }) => ({ label: name, stroke: colour(of), width: 2, points: { show: lines.length < 3 } })),
    ],
  }
}
