import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { generateText, wrapLanguageModel } from 'ai'
import type { Agent } from '../agents/define-agent.ts'
import type { Env } from '../bindings.ts'
import { meter } from '../models/meter.ts'
import type { ModelCall } from '../models/model-call.ts'
import { resolveModel } from '../models/resolve-model.ts'
import { modelForSession } from '../wrap/model.ts'
import type { Budget } from './budget.ts'
import type { Counters } from './counters.ts'
import type { Log } from './log.ts'
import type { Skills } from './skills/skills.ts'
import { childHead } from './spans.ts'
import { reflexGuidance } from './system-1/guidance.ts'
import type { Turn } from './turn.ts'
import type { UnitOfWork } from './unit-of-work.ts'

export type ModelParts = {
  env: Env
  agent: () => Agent
  budget: Budget
  log: Log
  counters: Counters
  skills: Skills
  unit: UnitOfWork
  now: () => number
}

/**
 * One turn's model: it stops with the turn, its tokens are counted against the budget, and it knows the skills that fit: it is told of them once, and what
 * it proposes is decided on by the gate and run.
 */
export function turnModel(parts: ModelParts, turn: Turn): LanguageModelV4 {
  const counted = countedModel(parts, turn)
  let skilled: Promise<LanguageModelV4> | undefined
  const ready = () => (skilled ??= withSkills(parts, turn, counted))
  return wrapLanguageModel({
    model: counted,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ params }) => (await ready()).doGenerate(params),
      wrapStream: async ({ params }) => (await ready()).doStream(params),
    },
  })
}

/** Opened with the model's first call: a turn that asks no model has no session. */
async function withSkills({ skills }: ModelParts, turn: Turn, model: LanguageModelV4): Promise<LanguageModelV4> {
  if (!(await skills.any())) return model
  const { head, turn_id, earlier_turns, signal } = turn
  const session = await skills.open({
    head,
    causes: [turn_id, ...earlier_turns],
    signal,
    ask: async ({ prompt, temperature }, stopped) => {
      const abortSignal = stopped ? AbortSignal.any([signal, stopped]) : signal
      return (await generateText({ model, prompt, temperature, abortSignal, maxRetries: 0 })).text
    },
  })
  return modelForSession(model, { session, roles: skills.agentRoles })
}

function countedModel(parts: ModelParts, turn: Turn): LanguageModelV4 {
  const { env, agent, budget, now } = parts
  const name = env.REFLEX_MODEL ?? 'offline'
  const stoppable = wrapLanguageModel({
    model: resolveModel(name, env, agent().offline),
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => {
        turn.signal.throwIfAborted()
        const prompt = guided(params)
        return { ...params, prompt, abortSignal: params.abortSignal ? AbortSignal.any([params.abortSignal, turn.signal]) : turn.signal }
      },
    },
  })
  return meter(stoppable, { allow: () => budget.allow(), record: (modelCall) => recordCall(parts, turn, modelCall), now, name })
}

/** A model that may write reflexes is told when that pays. */
function guided({ prompt, tools = [] }: LanguageModelV4CallOptions): LanguageModelV4CallOptions['prompt'] {
  if (!tools.some(({ name }) => name === 'write_reflex')) return prompt
  return [{ role: 'system', content: reflexGuidance }, ...prompt]
}

/** A call counts even when its turn has ended meanwhile: it was paid for. */
function recordCall({ log, counters, budget, unit }: ModelParts, turn: Turn, modelCall: ModelCall): void {
  const { input_tokens, output_tokens, cost_usd, duration_ms, model, status, prompt_hash, content, finish_reason, error } = modelCall
  const usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
  turn.usage.input_tokens += input_tokens
  turn.usage.output_tokens += output_tokens
  turn.usage.model_calls += 1
  turn.usage.cost_usd = turn.usage.cost_usd === null || cost_usd === null ? null : turn.usage.cost_usd + cost_usd
  unit(() => {
    budget.spend(input_tokens + output_tokens)
    counters.add({ model_calls: 1, input_tokens, output_tokens, cost_usd: cost_usd ?? 0 })
    const entry = {
      turn_id: turn.turn_id,
      model,
      status,
      prompt_hash,
      content: log.clean(content.map(readable)),
      finish_reason,
      error,
      usage,
    }
    log.append([{ ...childHead(turn.head, duration_ms), kind: 'model-called', ...entry }])
  })
}

/** A tool call's input is JSON in a text: what it keeps secret is found only once it is read. */
function readable(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || !('input' in part) || typeof part.input !== 'string') return part
  try {
    return { ...part, input: JSON.parse(part.input) as unknown }
  } catch {
    return part
  }
}
