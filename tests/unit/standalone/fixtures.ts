import type { LanguageModelV4GenerateResult, LanguageModelV4StreamPart, LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { tool, type ToolSet } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import type { ReflexConfig } from '../../../src/standalone/config.ts'
import { createReflex, type Reflex } from '../../../src/standalone/index.ts'
import { saveNote } from './save-note.ts'

export { saveNote }

export const saveNoteWith = (changes: Record<string, unknown>): unknown => ({ ...saveNote, ...changes })

export const proposal = (title: string, skill_id = 'note.save'): string =>
  `<SKILL_PROPOSE>${JSON.stringify({ skill_id, why: 'asked to', inputs: { title } })}</SKILL_PROPOSE>`

export type World = { reflex: Reflex; saved: string[]; tools: ToolSet }

/** A Reflex whose plans save into `saved`; ids and the clock count. */
export function world(config: Partial<ReflexConfig> = {}): World {
  const saved: string[] = []
  let ids = 0
  let time = Date.parse('2026-11-21T05:00:00.000Z')
  const save = tool({
    inputSchema: z.object({ title: z.string() }),
    execute: async ({ title }) => {
      saved.push(title)
      return { id: `id of ${title}` }
    },
  })
  const tools = { 'notes.save': save }
  const reflex = createReflex({
    project: 'acme/notes',
    roles: ['writer'],
    skills: [saveNote],
    tools,
    now: () => (time += 1),
    newId: () => `id-${++ids}`,
    ...config,
  })
  return { reflex, saved, tools }
}

export type Said =
  | string
  | { text?: string; calls?: { name: string; input: unknown }[]; finish?: LanguageModelV4GenerateResult['finishReason']['unified'] }

/** A model that says these things, one a call, however it is called. */
export function scripted(...answers: Said[]): MockLanguageModelV4 {
  const results = answers.map(resultOf)
  return new MockLanguageModelV4({ doGenerate: results, doStream: results.map((result) => ({ stream: streamOf(partsOf(result)) })) })
}

export function resultOf(said: Said, index = 0): LanguageModelV4GenerateResult {
  const { text, calls = [], finish } = typeof said === 'string' ? { text: said } : said
  return {
    content: [
      ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
      ...calls.map(({ name, input }, call): LanguageModelV4ToolCall => ({
        type: 'tool-call',
        toolCallId: `call-${index}-${call}`,
        toolName: name,
        input: JSON.stringify(input),
      })),
    ],
    finishReason: { unified: finish ?? (calls.length > 0 ? 'tool-calls' : 'stop'), raw: undefined },
    usage: {
      inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 3, text: 3, reasoning: undefined },
    },
    warnings: [],
  }
}

/** The parts of an answer as they are streamed, its text cut at these places. */
export function partsOf(
  { content, usage, finishReason }: LanguageModelV4GenerateResult,
  cuts?: readonly number[],
): LanguageModelV4StreamPart[] {
  const parts = content.flatMap((part, index): LanguageModelV4StreamPart[] => {
    const id = `text-${index}`
    if (part.type === 'tool-call') return [part]
    if (part.type !== 'text') return []
    const deltas = piecesOf(part.text, cuts).map((delta): LanguageModelV4StreamPart => ({ type: 'text-delta', id, delta }))
    return [{ type: 'text-start', id }, ...deltas, { type: 'text-end', id }]
  })
  return [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', usage, finishReason }]
}

function piecesOf(text: string, cuts: readonly number[] | undefined): string[] {
  const places = cuts
    ? cuts.map((cut) => cut % (text.length + 1)).toSorted((left, right) => left - right)
    : Array.from({ length: text.length }, (_, at) => at)
  return [0, ...places].map((from, index) => text.slice(from, [0, ...places][index + 1] ?? text.length)).filter((piece) => piece !== '')
}

export const streamOf = <Part>(parts: readonly Part[]): ReadableStream<Part> =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The prompts of the model's calls as text. */
export const promptsOf = (model: MockLanguageModelV4): string[] =>
  [...model.doGenerateCalls, ...model.doStreamCalls].map(({ prompt }) =>
    prompt
      .flatMap(({ content }) =>
        typeof content === 'string' ? [content] : content.map((part) => ('text' in part ? part.text : JSON.stringify(part))),
      )
      .join('\n'),
  )

export const count = (text: string, part: string): number => text.split(part).length - 1
