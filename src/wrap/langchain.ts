import { dynamicTool, jsonSchema, type ToolSet } from 'ai'
import { hashJson } from '../skills/json.ts'
import { callIds, contentText, type ChatMessage, hasToolCalls, messagesOf, roleOf, textOfMessage, withText } from './chat-messages.ts'
import { ChatRounds } from './chat-rounds.ts'
import { HeldText } from './held-text.ts'
import type { Reflex } from './reflex.ts'
import { TurnFinder } from './turn-finder.ts'
import { markWrapped, refuseWrapped } from './wrapped.ts'

/** A chat model of LangChain, by its shape. */
export type ChatModel = {
  invoke(input: unknown, options?: unknown): Promise<ChatMessage>
  stream?(input: unknown, options?: unknown): Promise<AsyncIterable<ChatMessage>>
  bindTools?(tools: unknown[], options?: unknown): ChatModel
}

/** A tool of LangChain, by its shape. */
export type ChainTool = { name: string; description?: string; invoke(input: unknown, options?: unknown): Promise<unknown> }

/** The same chat model with skills. `tools` are what plans may call; what the model is bound to stays the caller's. */
export function wrapLangChain(
  reflex: Reflex,
  { model, tools = [] }: { model: ChatModel; tools?: readonly ChainTool[] },
): Required<ChatModel> {
  refuseWrapped(model, 'the chat model')
  const finder = new TurnFinder(() => reflex.turn({ tools: planTools(tools) }))
  return wrapChatModel(model, finder)
}

function wrapChatModel(model: ChatModel, finder: TurnFinder): Required<ChatModel> {
  const rounds = async (input: unknown, options: unknown) => {
    const messages = messagesOf(input)
    return new ChatRounds(await turnOf(finder, messages), messages, options)
  }
  return markWrapped({
    async invoke(input, options) {
      const current = await rounds(input, options)
      return failing(current, async () => {
        let said = ''
        for (;;) {
          const reply = await model.invoke(current.next(), options)
          const end = await current.ended(reply, said)
          if (!end.again) return withText(reply, end.visible)
          said = end.visible
        }
      })
    },
    async stream(input, options) {
      return streamChunks(model, await rounds(input, options), options)
    },
    bindTools(tools, options) {
      if (!model.bindTools) throw new TypeError('the chat model takes no tools')
      return wrapChatModel(model.bindTools(tools, options), finder)
    },
  })
}

/** What fails is told to its turn, so that a repetition goes on with it. */
export async function failing<Result>(rounds: ChatRounds, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    rounds.failed()
    throw error
  }
}

async function* streamChunks(model: ChatModel, rounds: ChatRounds, options: unknown): AsyncGenerator<ChatMessage> {
  if (!model.stream) throw new TypeError('the chat model does not stream')
  let said = ''
  for (;;) {
    const held = new HeldText()
    const before = said
    let last: ChatMessage = { content: '' }
    let called = false
    for await (const chunk of await model.stream(rounds.next(), options)) {
      last = chunk
      called ||= hasToolCalls(chunk)
      const text = held.push(contentText(chunk.content))
      said += text
      yield withText(chunk, text)
    }
    const reply = { role: 'assistant', content: held.whole, ...(called ? { tool_calls: [{}] } : {}) }
    const end = await rounds.ended(reply, before)
    const rest = end.visible.slice(said.length)
    said = end.visible
    if (rest !== '') yield withText({ ...last, content: '' }, rest)
    if (!end.again) return
  }
}

export async function turnOf(finder: TurnFinder, messages: readonly unknown[]) {
  const said = messages.findLastIndex((message) => roleOf(message) === 'user')
  const spoken = messages.slice(0, said + 1).filter((message) => roleOf(message) !== 'system')
  const key = await hashJson(spoken.map((message) => [roleOf(message), textOfMessage(message)]))
  return finder.find(key, { begins: said === messages.length - 1, calls: messages.slice(said + 1).flatMap(callIds) })
}

/** Tools that check their own input: a plan's arguments go to them as they are. */
export function planTools(tools: readonly ChainTool[]): ToolSet {
  return Object.fromEntries(
    tools.map((chained) => [
      chained.name,
      dynamicTool({
        description: chained.description ?? '',
        inputSchema: jsonSchema({ type: 'object' }),
        execute: (input, { abortSignal }) => chained.invoke(input, { signal: abortSignal }),
      }),
    ]),
  )
}
