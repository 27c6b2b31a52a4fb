import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A call of a tool. Calls that follow each other are of one message. */
export type ScriptedCall = { tool: string; input: object }

/**
 * The model's response in parts. If it throws before the first, the server responds 500, or 400 to
 * a Refusal.
 */
export type Script = (question: string) => AsyncIterable<string | ScriptedCall>
/** A failure that no retry fixes. */
export class Refusal extends Error {}

export type ScriptedModel = {
  /** The Worker's variables that name this model. */
  vars: Record<string, string>
  /** The questions so far, in the order in which they came. */
  asked: string[]
  /** Questions whose asker hung up before the answer was whole. */
  abandoned: string[]
  script: Script
  stop: () => void
}

/** A local model server with the chat completions protocol, scripted by the test. */
export async function scriptedModel(script: Script): Promise<ScriptedModel> {
  const server = createServer((request, response) => {
    answer(model, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else
        response
          .writeHead(error instanceof Refusal ? 400 : 500, { 'content-type': 'application/json' })
          .end(JSON.stringify({ error: { message: String(error) } }))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const model: ScriptedModel = {
    vars: {
      REFLEX_MODEL: 'openai-compatible/scripted',
      OPENAI_COMPATIBLE_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_COMPATIBLE_API_KEY: 'none',
    },
    asked: [],
    abandoned: [],
    script,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return model
}

type Asked = { stream?: boolean; messages: { content: string | { text?: string }[] }[] }

async function answer(model: ScriptedModel, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { stream = false, messages } = JSON.parse(await text(request)) as Asked
  const content = messages.at(-1)?.content ?? ''
  const question = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
  model.asked.push(question)
  response.once('close', () => {
    if (!response.writableFinished) model.abandoned.push(question)
  })
  const about = { id: 'scripted', created: 0, model: 'scripted' }
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
  let whole = ''
  const tool_calls: object[] = []
  const write = (choice: object, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }], ...more })}\n\n`,
    )
  for await (const piece of model.script(question)) {
    if (stream && !response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (typeof piece === 'string') {
      if (stream) write({ delta: { role: 'assistant', content: piece }, finish_reason: null })
      whole += piece
      continue
    }
    const call = { id: `call-${randomUUID()}`, type: 'function', function: { name: piece.tool, arguments: JSON.stringify(piece.input) } }
    if (stream) write({ delta: { tool_calls: [{ index: tool_calls.length, ...call }] }, finish_reason: null })
    tool_calls.push(call)
  }
  const finish_reason = tool_calls.length > 0 ? 'tool_calls' : 'stop'
  if (stream) {
    write({ delta: {}, finish_reason }, { usage })
    response.end('data: [DONE]\n\n')
    return
  }
  const message = { role: 'assistant', content: whole, ...(tool_calls.length > 0 && { tool_calls }) }
  const choices = [{ index: 0, message, finish_reason }]
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ ...about, object: 'chat.completion', choices, usage }))
}

/** Something that a script waits for, and that the test lets go. */
export function gate(): { opened: Promise<void>; open: () => void } {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  return { opened, open }
}
