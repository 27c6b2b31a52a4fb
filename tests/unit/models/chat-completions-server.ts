import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { z } from 'zod'
import { collect } from './model-fixtures.ts'

const chatBody = z.object({
  model: z.string(),
  stream: z.boolean().optional(),
  stream_options: z.object({ include_usage: z.boolean() }).optional(),
  response_format: z.object({ type: z.string() }).optional(),
})
type ChatBody = z.infer<typeof chatBody>
type ChatRequest = { path: string | undefined; authorization: string | undefined; body: ChatBody }

const USAGE = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 }

/** A local chat completions server: it answers "Hello there" to every key but "wrong". */
export async function startChatServer() {
  const requests: ChatRequest[] = []
  const server = createServer((request, response) => void serve(request, response, requests))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return {
    requests,
    url: `http://127.0.0.1:${port}/v1`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

async function serve(incoming: IncomingMessage, response: ServerResponse, requests: ChatRequest[]): Promise<void> {
  const body = chatBody.parse(JSON.parse((await collect<unknown>(incoming)).join('')))
  requests.push({ path: incoming.url, authorization: incoming.headers.authorization, body })
  if (incoming.headers.authorization === 'Bearer wrong') return json(response, 401, { error: { message: 'Incorrect API key provided' } })
  return body.stream ? stream(response, body) : complete(response, body)
}

function complete(response: ServerResponse, { model, response_format }: ChatBody): void {
  const content = response_format?.type === 'json_schema' ? '{"severity":3}' : 'Hello there'
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  json(response, 200, { id: 'chat-1', object: 'chat.completion', created: 0, model, choices, usage: USAGE })
}

function stream(response: ServerResponse, { model, stream_options }: ChatBody): void {
  const send = (choices: unknown[], usage?: unknown) =>
    response.write(`data: ${JSON.stringify({ id: 'chat-1', object: 'chat.completion.chunk', created: 0, model, choices, usage })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send([{ index: 0, delta: { role: 'assistant', content: 'Hello ' } }])
  send([{ index: 0, delta: { content: 'there' } }])
  send([{ index: 0, delta: {}, finish_reason: 'stop' }])
  if (stream_options?.include_usage) send([], USAGE)
  response.end('data: [DONE]\n\n')
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
