import type {
  Experimental_DecisionModelV4 as DecisionModel,
  Experimental_DecisionModelV4Answer as Answer,
  Experimental_DecisionModelV4CallOptions as CallOptions,
  Experimental_DecisionModelV4Question as Question,
  Experimental_DecisionModelV4Result as Result,
} from '@ai-sdk/provider'
import { estimateTokenCount } from 'tokenx'

/** Weight of a word that the state shares with a description. */
const PER_WORD = 2
const SHORTEST_WORD = 3

/**
 * Answers by the words that the state shares with each option. Needs no network, and answers equal
 * questions equally. For tests and the local server: its probabilities are not calibrated.
 */
export class OfflineDecisionModel implements DecisionModel {
  readonly specificationVersion = 'v4'
  readonly provider = 'offline'
  readonly modelId = 'offline'
  readonly supportedQuestionTypes = ['choice', 'score', 'boolean'] as const

  async doDecide({ state, questions, abortSignal }: CallOptions): Promise<Result> {
    abortSignal?.throwIfAborted()
    const words = wordsOf(state)
    const answers = Object.fromEntries(Object.entries(questions).map(([id, question]) => [id, answerTo(question, words)]))
    return {
      answers,
      usage: { inputTokens: estimateTokenCount(JSON.stringify([state, questions])), outputTokens: 0 },
      response: { modelId: this.modelId },
      warnings: [],
    }
  }
}

function answerTo(question: Question, words: ReadonlySet<string>): Answer {
  const shared = (text: unknown): number => Array.from(wordsOf(text)).filter((word) => words.has(word)).length
  switch (question.type) {
    case 'choice': {
      const options = Object.entries(question.criteria)
      const weights = softmax(options.map((option) => shared(option)))
      const probabilities = Object.fromEntries(options.map(([name], index) => [name, weights[index] ?? 0]))
      const best = weights.indexOf(Math.max(...weights))
      return { type: 'choice', choice: options[best]?.[0] ?? '', probabilities }
    }
    case 'score': {
      const weights = softmax(question.criteria.map(shared))
      const score = weights.reduce((sum, weight, level) => sum + weight * level, 0)
      return { type: 'score', score, probabilities: Object.fromEntries(weights.map((weight, level) => [String(level), weight])) }
    }
    case 'boolean': {
      const { instructions = null, criteria = null } = question
      // A question without a shared word is answered with no.
      const [yes = 0] = softmax([shared([instructions, criteria?.true]), shared(criteria?.false) + 1])
      return { type: 'boolean', probability: yes }
    }
    case 'box':
      break
  }
  return { type: 'refusal' }
}

function softmax(counts: readonly number[]): number[] {
  const most = Math.max(...counts)
  const weights = counts.map((count) => Math.exp(PER_WORD * (count - most)))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

/** The words of a text, or of the texts and field names in a value. */
function wordsOf(value: unknown): Set<string> {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return new Set((text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length >= SHORTEST_WORD))
}
