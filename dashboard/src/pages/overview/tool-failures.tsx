import type { z } from 'zod'
import type { statistics } from '../../../../src/contract/reports/statistics.ts'
import { query, useGet } from '../../api/index.ts'
import { count, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'

type Statistics = z.infer<typeof statistics>
const EVERY_MS = 15_000
const MOST = 10

/** The tools whose calls failed in this time, most failures first; nothing if none failed. */
export function ToolFailures({ bucket }: { bucket: string }) {
  const { value: failed } = useGet<Statistics>(`/v1/stats${query({ metric: 'tool.failed', by: 'tool', bucket })}`, { every_ms: EVERY_MS })
  const failing = (failed?.series ?? []).filter(({ total }) => (total ?? 0) > 0)
  const path = failing.length > 0 ? `/v1/stats${query({ metric: 'tool.calls', by: 'tool', bucket })}` : null
  const { value: calls } = useGet<Statistics>(path, { every_ms: EVERY_MS })
  if (failing.length === 0) return null
  const callsOf = (tool: string | null) => calls?.series.find(({ label }) => label === tool)?.total ?? null
  return (
    <Section title="Tools that failed">
      <table class="plain card">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Failed calls</th>
            <th scope="col">Of its calls</th>
          </tr>
        </thead>
        <tbody>
          {failing.slice(0, MOST).map(({ label, total }) => {
            const all = callsOf(label)
            return (
              <tr key={label}>
                <th scope="row">
                  <bdi>{label}</bdi>
                </th>
                <td class="bad">✕ {count(total)}</td>
                <td>{all === null || total === null ? '–' : `${percent(total / all)} of ${count(all)}`}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <p>
        <a href="/traces?status=partial">Traces that went on although a tool failed</a>
        {failing.length > MOST && ` · ${failing.length - MOST} more tools failed`}
      </p>
    </Section>
  )
}
