import type { Api } from '../../cli/lib/api.ts'
import { scopePath } from './set-up.ts'

/** A log entry, as far as the example reads it; docs and `/v1/docs` list all fields. */
export type Entry = {
  seq: number
  kind: string
  trace_id: string
  duration_ms: number | null
  skill_id?: string
  status?: string
  tool?: string
  step?: string
  content?: unknown
  outputs?: Record<string, unknown>
  cost_usd?: number
  sources?: Record<string, string>
  cards?: { skill_id: string; tokens: number; score: number }[]
  decision?: Decision
  usage?: { input_tokens: number; output_tokens: number; cost_usd: number | null }
}
export type Decision = {
  verdict: string
  score: { score: number; tau: number } | null
  stages: { stage: string; status: string; checks: { check: string; passed: boolean; detail: string }[] }[]
  probes: { probe: string; args: unknown[]; result?: unknown }[]
}

export async function readLog(api: Api, scope: string): Promise<Entry[]> {
  const entries: Entry[] = []
  for (let after: string | null = '0'; after !== null;) {
    const page: { items: Entry[]; next_cursor: string | null } = await api.json(scopePath(scope, `/log?limit=1000&after=${after}`))
    entries.push(...page.items)
    after = page.next_cursor
  }
  return entries
}
