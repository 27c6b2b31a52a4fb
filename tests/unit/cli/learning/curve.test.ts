import { describe, expect, it } from 'vitest'
import { bucketsOf, curveSvg, curveText, type Curve } from '../../../../cli/learning/curve.ts'
import { plainPaint } from '../../../../cli/lib/paint.ts'

const calls = [...Array.from({ length: 250 }, () => 2), ...Array.from({ length: 150 }, () => 0)]
const curve: Curve = {
  title: 'Model calls',
  buckets: bucketsOf(calls, 100),
  marks: [
    { after: 100, text: 'a reflex is in shadow mode' },
    { after: 250, text: 'it acts on <script> & "quotes"' },
  ],
}
const text = (columns: number, of = curve) => curveText(of, { columns, paint: plainPaint })

describe('the curve of model calls', () => {
  it('counts calls in buckets, of which the last may be short', () => {
    expect(bucketsOf([1, 2, 0, 4, 5], 2)).toEqual([
      { from: 0, events: 2, calls: 3 },
      { from: 2, events: 2, calls: 4 },
      { from: 4, events: 1, calls: 5 },
    ])
    expect(bucketsOf([], 100)).toEqual([])
  })

  it('shows full buckets to the top, half ones to the middle, and none for no call', () => {
    const rows = text(80)
    expect(rows[1]).toBe('  200 ████████')
    expect(rows[5]).toBe('  100 ████████████')
    expect(rows[9]).toMatch(/^ {6}0 +400 events$/)
  })

  it('numbers its marks below the axis, in order', () => {
    const rows = text(80)
    expect(rows[10]?.indexOf('1')).toBeLessThan(rows[10]?.indexOf('2') ?? 0)
    expect(rows.slice(11)).toEqual(['  1 after 100: a reflex is in shadow mode', '  2 after 250: it acts on <script> & "quotes"'])
  })

  it.each([20, 40, 80])('fits its bars into %i columns', (columns) => {
    const many: Curve = {
      ...curve,
      buckets: bucketsOf(
        Array.from({ length: 1200 }, () => 1),
        100,
      ),
    }
    for (const row of text(columns, many).slice(1, 9)) expect(row.length).toBeLessThan(columns)
  })

  it('has nothing to show without events', () => expect(text(80, { title: 'None', buckets: [], marks: [] })[0]).toBe('None'))

  it('is an SVG document in which texts cannot become markup', () => {
    const svg = curveSvg(curve)
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="0 0 820 380"/)
    expect(svg).toContain('it acts on &lt;script&gt; &amp; &quot;quotes&quot;')
    expect(svg).not.toContain('<script')
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
    expect(curveSvg({ title: '', buckets: [], marks: [] })).not.toMatch(/NaN|undefined|Infinity/)
  })
})
