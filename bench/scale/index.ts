import { columns } from '../figure.ts'
import { hotScope } from './hot.ts'
import { loneEvents } from './lone.ts'
import type { ScaleLine, ScaleOptions } from './place.ts'
import { manyScopes } from './scopes.ts'
import { muchStored } from './stored.ts'
import { resendStorm } from './storm.ts'

/** Takes minutes to hours: measured only when it is named. */
export const scales: Record<string, (options: ScaleOptions) => Promise<ScaleLine[]>> = {
  scale: manyScopes,
  storm: resendStorm,
  stored: muchStored,
  hot: hotScope,
  lone: loneEvents,
}

export function scaleTable(lines: readonly ScaleLine[]): string {
  const rows = lines.map(({ what, value, unit, target, ok }) => [
    what,
    `${value.toPrecision(3)} ${unit}`,
    target,
    ok === null ? '' : ok ? 'ok' : 'MISSED',
  ])
  return columns([['what', 'measured', 'target', ''], ...rows])
}
