import { listen, type SentResponse, type ReceivedRequest } from '../../cli/lib/listen.ts'

type Message = { role: string; content: string | { text?: string }[] | null }
export type ScriptedModel = { vars: Record<string, string>; stop: () => void }

const NOTE = '(A script speaks here: no model was asked.)'
/** The script's words after it built an image, which it finds again in the conversation. */
const BUILT = /I built and pushed (\S+)\./

/** A scripted language model behind the common protocol, so that the example needs no network. */
export async function startScriptedModel(): Promise<ScriptedModel> {
  const { host, stop } = await listen(completion)
  const vars = {
    // A name with a list price, so that its tokens have a cost.
    REFLEX_MODEL: 'openai-compatible/gpt-4.1',
    OPENAI_COMPATIBLE_BASE_URL: `http://${host}/v1`,
    OPENAI_COMPATIBLE_API_KEY: 'none',
  }
  return { vars, stop }
}

function completion({ body }: ReceivedRequest): SentResponse {
  const { messages, tools = [] }: { messages: Message[]; tools?: unknown[] } = JSON.parse(body)
  const said = messages.map(({ role, content: text }) => ({ role, text: textOf(text) }))
  const next = tools.length === 0 ? answerTo(said) : releaseOf(said)
  const content = typeof next === 'string' ? next : ''
  const tool_calls =
    typeof next === 'string'
      ? []
      : [{ id: `call-${messages.length}`, type: 'function', function: { name: next.tool, arguments: JSON.stringify(next.input) } }]
  const [prompt_tokens, completion_tokens] = [
    Math.ceil(body.length / 4),
    Math.ceil((content.length + JSON.stringify(tool_calls).length) / 4),
  ]
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  const called = tool_calls.length > 0
  const message = { role: 'assistant', content, ...(called && { tool_calls }) }
  const choices = [{ index: 0, message, finish_reason: called ? 'tool_calls' : 'stop' }]
  return { status: 200, body: { id: 'scripted', created: 0, model: 'scripted', object: 'chat.completion', choices, usage } }
}

const textOf = (content: Message['content']): string =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('')

type Said = { role: string; text: string }

/** The script: the next answer, by the latest message. */
export function answerTo(messages: readonly Said[]): string {
  const last = messages.at(-1)?.text ?? ''
  const result = /<SKILL_RESULT>(.*)<\/SKILL_RESULT>/s.exec(last)?.[1]
  if (result !== undefined) return afterResult(JSON.parse(result))
  const built = messages.findLast(({ role, text: said }) => role === 'assistant' && BUILT.test(said))
  const image_tag = BUILT.exec(built?.text ?? '')?.[1]
  if (image_tag === undefined) return propose('ensure_acr', {}, 'the image needs a registry to go to')
  return propose('deploy.container.appservice', { app_name: last.trim(), image_tag }, 'the image is ready, and the app is named')
}

type Result = { skill_id: string; status: string; outputs?: Record<string, unknown>; reason?: string }

function afterResult({ skill_id, status, outputs = {}, reason = '' }: Result): string {
  if (status !== 'ok' && status !== 'reused') return `${NOTE} I stop here: ${skill_id} ended as ${status}. ${reason}`
  if (skill_id === 'ensure_acr') return propose('docker_build_and_push', {}, 'the registry is there')
  if (skill_id !== 'docker_build_and_push') return `${NOTE} It is deployed: ${String(outputs['endpoint'])}`
  const questions = [{ slot: 'app_name', question: 'Which App Service? (e.g., payments-stg-webapp)' }]
  return `${NOTE} I built and pushed ${String(outputs['image_tag'])}. <CLARIFY>${JSON.stringify({ questions })}</CLARIFY>`
}

const propose = (skill_id: string, inputs: Record<string, string>, why: string): string =>
  `<SKILL_PROPOSE>${JSON.stringify({ skill_id, why, inputs })}</SKILL_PROPOSE>`

/** The script where the model has the tools themselves: one step at a time, or a learned skill. */
function releaseOf(messages: readonly Said[]): string | { tool: string; input: Record<string, string> } {
  const asked = messages.findLast(({ text }) => RELEASE.test(text))?.text ?? ''
  const [, commit = '', app = ''] = RELEASE.exec(asked) ?? []
  if (commit === '') return `${NOTE} Nothing to deploy.`
  const learned = /^- (learned\.\S+?):.*inputs \{([^}]*)\}/m.exec(messages.map(({ text }) => text).join('\n'))
  const last = messages.at(-1)
  const result = /<SKILL_RESULT>(.*)<\/SKILL_RESULT>/s.exec(last?.text ?? '')?.[1]
  if (result !== undefined) return `${NOTE} ${(JSON.parse(result) as Result).status}: ${app} runs ${commit}.`
  if (learned?.[1]) return propose(learned[1], { commit, app }, 'deploy the commit to the app')
  const done = messages.filter(({ role }) => role === 'tool')
  const image = /"image":"([^"]+)"/.exec(done.at(-1)?.text ?? '')?.[1] ?? ''
  const steps = [
    { tool: 'http_ensure_acr', input: { registry: 'acmeregistry' } },
    { tool: 'http_docker_build_and_push', input: { registry: 'acmeregistry', commit } },
    { tool: 'http_deploy', input: { app, image } },
  ]
  return steps[done.length] ?? `${NOTE} ok: ${app} runs ${commit}.`
}

const RELEASE = /deploy commit ([0-9a-f]{7}) to (\S+)/i
