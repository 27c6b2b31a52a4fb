import { extract } from './offline-extract.ts'
import type { OfflineRequest } from './offline-request.ts'

/** Stands before every text of the offline model, so that nobody takes it for a model's answer. */
export const OFFLINE_PREFIX = '[offline model: no model was asked]'

export type OfflineAnswer = { text?: string; tool?: { name: string; input: unknown } }
export type OfflineRule = { name: string; answer(request: OfflineRequest): OfflineAnswer | null }

/** The first rule's answer that fits the request, else an extract of the request. */
export function answerOffline(rules: readonly OfflineRule[], request: OfflineRequest): OfflineAnswer {
  const { text, tool } = firstAnswer(rules, request, () => true) ?? { text: extract(request) }
  return { ...(text !== undefined && { text: `${OFFLINE_PREFIX} ${text}` }), ...(tool && { tool }) }
}

/** For structured output: the first rule's tool call or JSON object. No prefix, which would break the JSON. Throws when no rule has one. */
export function answerOfflineAsJson(rules: readonly OfflineRule[], request: OfflineRequest): OfflineAnswer {
  const answer = firstAnswer(rules, request, ({ text, tool }) => tool !== undefined || isJsonObject(text))
  if (answer === null) {
    throw new Error(
      "The offline model can't produce structured output without a rule: no offline rule answered this request with a JSON object. " +
        'Give resolveModel a rule that does, or set REFLEX_MODEL to a real model.',
    )
  }
  return answer.tool && !isJsonObject(answer.text) ? { tool: answer.tool } : answer
}

function firstAnswer(
  rules: readonly OfflineRule[],
  request: OfflineRequest,
  fits: (answer: OfflineAnswer) => boolean,
): OfflineAnswer | null {
  for (const rule of rules) {
    const answer = rule.answer(request)
    if (answer === null || (answer.text === undefined && answer.tool === undefined) || !fits(answer)) continue
    if (answer.tool && !request.tools.includes(answer.tool.name)) {
      const offered = request.tools.join(', ') || 'none'
      throw new Error(
        `Offline rule "${rule.name}" calls the tool "${answer.tool.name}", which this call doesn't offer (offered: ${offered}).`,
      )
    }
    return answer
  }
  return null
}

function isJsonObject(text: string | undefined): boolean {
  if (text === undefined) return false
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
