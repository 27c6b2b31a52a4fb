import { compact, money, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Sparkline } from '../../ui/sparkline.tsx'
import type { Metrics, Summary } from './page.tsx'

type ModelsProps = { metrics: Metrics; summary: Summary }
type Series = { title: string; names: string[]; show: (value: number | null | undefined) => string; saved: string }

const series: Series[] = [
  { title: 'Model calls', names: ['model.calls'], show: compact, saved: 'reflexes.saved_model_calls' },
  { title: 'Tokens', names: ['model.input_tokens', 'model.output_tokens'], show: compact, saved: 'reflexes.saved_tokens' },
  { title: 'Money', names: ['model.cost_usd'], show: usd, saved: 'reflexes.saved_cost_usd' },
]
const HOUR_MS = 3_600_000
const STEPS: Record<string, number> = { minute: HOUR_MS / 60, hour: HOUR_MS, day: 24 * HOUR_MS }

/** Calls, tokens and money, each with its course and with what reflexes saved. */
export function Models({ metrics, summary }: ModelsProps) {
  const step = STEPS[summary.bucket] ?? HOUR_MS
  const first = Date.parse(summary.since)
  const buckets = Math.max(1, Math.ceil((Date.parse(summary.until) - first) / step))
  return (
    <Section title="Models, and what reflexes saved">
      <div class="cards models">
        {series.map(({ title, names, show, saved }) => {
          const values = Array.from({ length: buckets }, () => 0)
          for (const { at, value } of names.flatMap((name) => metrics[name]?.points ?? [])) {
            const place = Math.round((Date.parse(at) - first) / step)
            if (place >= 0 && place < buckets) values[place] = (values[place] ?? 0) + (value ?? 0)
          }
          const total = values.reduce((sum, value) => sum + value, 0)
          const isMoney = show === usd
          const unpriced = isMoney ? (metrics['model.unpriced_calls']?.total ?? 0) : 0
          const free = unpriced > 0 && total === 0
          const save = metrics[saved]?.total
          return (
            <div class="card figure" key={title}>
              <h3>{title}</h3>
              <p class={free ? 'number wait' : 'number'}>{isMoney ? money(total, unpriced) : show(total)}</p>
              <p class="quiet">
                {free ? 'REFLEX_MODEL_PRICES sets prices of your own' : `${show((total * HOUR_MS) / (buckets * step))} per hour`}
              </p>
              <Sparkline values={values} label={`${title} per ${summary.bucket}; the most is ${show(Math.max(...values))}`} />
              <p>
                Saved by reflexes: <b>{free && !save ? 'price unknown' : show(save)}</b>
              </p>
            </div>
          )
        })}
      </div>
    </Section>
  )
}
