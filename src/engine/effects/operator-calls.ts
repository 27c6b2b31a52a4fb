import { messageOf } from '../../base/error-text.ts'
import type { OperatorCall, ProposalCaller, ReplayNote, SkillCall, TraceContext } from '../../contract/scope-api.ts'
import type { Refused } from '../../base/result.ts'
import { isPlatformFault } from '../../base/faults.ts'
import { scopeHead } from '../log/spans.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { JsonFields } from '../../base/json.ts'
import type { SkillRuns } from '../skills/runs.ts'
import type { SessionFor, Skills } from '../skills/sessions.ts'
import type { Lanes } from './wiring.ts'

type OperatorCallsParts = Pick<Lanes, 'database' | 'effects' | 'features' | 'unit' | 'agent' | 'settings' | 'memory'> & {
  skills: Skills
  runs: SkillRuns
}

/**
 * Calls from outside: proposals of skills, and tool calls by operators, which are effects even if
 * the model may not call the tool. The caller gives the key.
 */
export class OperatorCalls {
  readonly #parts: OperatorCallsParts

  constructor(parts: OperatorCallsParts) {
    this.#parts = parts
  }

  async call({ tool, input, key, trace }: OperatorCall, by: string): Promise<{ ok: true } | Refused<'no_tool' | 'failed'>> {
    const { effects, features, unit, agent, settings } = this.#parts
    const { name, tools } = agent()
    const given = Object.hasOwn(tools, tool) ? tools[tool] : undefined
    if (!given) return { ok: false, reason: 'no_tool', detail: `the agent ${name}, which serves this scope, has no tool ${tool}` }
    // Under the tool's own key, the result of an earlier call might answer it.
    const { idempotence_key: _own, ...definition } = given
    const { signal } = new AbortController()
    const timeout_ms = settings().effect_timeout_ms
    const head = scopeHead(trace)
    unit((unit) => unit.log({ ...head, kind: 'call-received', call: 'tool', name: tool, by, ...head.marks }))
    const request = {
      tool,
      definition,
      input,
      key,
      turn_id: null,
      earlier_turns: [],
      cause: { by },
      head,
      signal,
      timeout_ms,
      approved: true,
    }
    try {
      await effects.run(request)
    } catch (error) {
      if (isPlatformFault(error)) throw error
      return { ok: false, reason: 'failed', detail: messageOf(error) }
    }
    const { undoes } = definition
    if (undoes)
      unit((unit) => {
        for (const feature of features) feature.undone?.(unit, { tool, undoes }, input, { turn_id: null, who: by })
      })
    return { ok: true }
  }

  /** An empty scope stays empty. */
  replayed(note: ReplayNote, by: string, trace: TraceContext | undefined): void {
    const { unit, database } = this.#parts
    if (database.laid) unit((unit) => unit.log({ ...scopeHead(trace), kind: 'replay-done', ...note, by }))
  }

  async propose(
    { skill_id, inputs, why }: Pick<SkillProposal, 'skill_id' | 'why'> & { inputs: Record<string, unknown> },
    { call_id = crypto.randomUUID(), name, key_id, from, roles, dry_run, waits, named, trace }: ProposalCaller,
  ): Promise<ProposalResult> {
    const { unit, skills, runs, memory } = this.#parts
    const head = scopeHead(trace)
    unit((unit) => unit.log({ ...head, kind: 'call-received', call: 'skill', name: skill_id, by: name, ...head.marks }))
    const request = { from, proposer: { name, key_id }, roles, text: why, text_is_why: true as const, dry_run, waits, named }
    const cause = `call:${call_id}`
    return runs.stoppable(cause, (signal) => {
      const owner: SessionFor = { head, causes: [cause], events: memory.live.events, signal }
      return skills.propose({ skill_id, inputs: inputs as JsonFields, why }, request, owner)
    })
  }

  /** With `stop`, the name of who cancels it, the run is stopped and compensated. */
  run(cause: string, stop?: string): SkillCall | null {
    const { database, runs } = this.#parts
    if (stop !== undefined) runs.stop(cause, stop)
    return database.laid ? runs.ofCause(cause) : null
  }
}
