import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { withEarlierActs } from '../../agent/earlier-acts.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { jsonHash, SHORT_HASH } from '../../base/hash.ts'
import { linesOf } from '../../base/prompt-lines.ts'
import { modelForSession } from '../../skills/model/model.ts'
import { isModelAsked } from '../../contract/model-asked.ts'
import { countedModel, type CountedParts } from './metered-model.ts'
import type { Event } from '../../core/event.ts'
import type { ProposalSession } from '../../skills/session/session.ts'
import type { SessionFor, Skills } from '../skills/sessions.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Turn } from './turn.ts'

/** `open` returns what runs a proposal, or only records it. */
type TurnSkills = Pick<Skills, 'any' | 'agentRoles'> & { open: (owner: SessionFor) => Promise<ProposalSession> }
export type ModelParts = CountedParts & { settings: () => Settings; skills: TurnSkills; features: readonly Pick<ScopeFeature, 'watches'>[] }
export type AskingTurn = Pick<Turn, 'turn_id' | 'head' | 'earlier_turns' | 'signal' | 'acts' | 'usage' | 'model'> & {
  claimed: readonly { event: Event }[]
  failed_runs?: Turn['failed_runs']
  done?: Turn['done']
  needed?: Turn['needed']
  shown?: Turn['shown']
  asked?: Turn['asked']
}

/**
 * A turn's model: it stops with the turn, is metered, and can propose skills, which the gate
 * decides.
 */
export function turnModel(parts: ModelParts, turn: AskingTurn): LanguageModelV4 {
  const counted = withEarlierActs(countedModel(parts, turn), turn.done)
  // A caller's request is sent as it is.
  const is_asked = turn.claimed.some(({ event }) => isModelAsked(event))
  let skilled: Promise<LanguageModelV4> | undefined
  const ready = () => (skilled ??= is_asked ? Promise.resolve(counted) : withSkills(parts, turn, counted))
  return wrapLanguageModel({
    model: counted,
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => {
        if (parts.features.some((feature) => feature.watches?.())) witness(turn, params)
        return params
      },
      wrapGenerate: async ({ params }) => (await ready()).doGenerate(params),
      wrapStream: async ({ params }) => (await ready()).doStream(params),
    },
  })
}

/** Opens the skill session with the first model call, so a turn without one has none. */
async function withSkills({ skills, settings }: ModelParts, turn: AskingTurn, model: LanguageModelV4): Promise<LanguageModelV4> {
  if (!(await skills.any())) return model
  const { head, turn_id, earlier_turns, signal, acts, failed_runs, claimed } = turn
  const events = claimed.map(({ event }) => event)
  const session = await skills.open({
    head,
    causes: [turn_id, ...earlier_turns],
    signal,
    model,
    events,
    acts,
    failed_runs,
    needed: () => turn.needed ?? null,
  })
  return modelForSession(model, { session, roles: skills.agentRoles, protocol: settings().skill_protocol })
}

/** Notes the instructions and tools of a call as the agent wrote them, before a bulletin. */
function witness(turn: AskingTurn, { prompt, tools = [] }: LanguageModelV4CallOptions): void {
  const shown = (turn.shown ??= { lines: new Set(), tools: new Set() })
  const data = turn.claimed.flatMap(({ event }) => Object.values(event).filter((value) => typeof value === 'string'))
  for (const message of prompt) if (message.role === 'system') for (const line of linesOf(message.content, data)) shown.lines.add(line)
  for (const tool of tools) shown.tools.add(jsonHash([tool.name, 'inputSchema' in tool ? tool.inputSchema : tool.args], SHORT_HASH))
}
