import { listen, type Answer, type Asked } from '../../cli/lib/listen.ts'

type Message = { role: string; content: string | { text?: string }[] }
export type ScriptedModel = { vars: Record<string, string>; stop: () => void }

const NOTE = '(A script speaks here: no model was asked.)'
/** The script's words after it built an image, which it finds again in the conversation. */
const BUILT = /I built and pushed (\S+)\./

/** A scripted language model behind the common protocol, so that the example needs no network. */
export async function startScriptedModel(): Promise<ScriptedModel> {
  const { host, stop } = await listen(completion)
  const vars = {
    REFLEX_MODEL: 'openai-compatible/scripted',
    OPENAI_COMPATIBLE_BASE_URL: `http://${host}/v1`,
    OPENAI_COMPATIBLE_API_KEY: 'none',
  }
  return { vars, stop }
}

function completion({ body }: Asked): Answer {
  const { messages }: { messages: Message[] } = JSON.parse(body)
  const content = answerTo(messages.map(({ role, content: said }) => ({ role, text: textOf(said) })))
  const [prompt_tokens, completion_tokens] = [Math.ceil(body.length / 4), Math.ceil(content.length / 4)]
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  return { status: 200, body: { id: 'scripted', created: 0, model: 'scripted', object: 'chat.completion', choices, usage } }
}

const textOf = (content: Message['content']): string =>
  typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')

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
