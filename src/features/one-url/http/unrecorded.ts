import { answerRequest } from '../../../agent/answer-request.ts'
import { messageOf } from '../../../base/error-text.ts'
import { modelFaultOf } from '../../../base/faults.ts'
import { deploymentHider } from '../../../base/secrets.ts'
import type { Env } from '../../../env.ts'
import { meter } from '../../../models/model-call.ts'
import { modelName, resolveModel } from '../../../models/resolve-model.ts'
import type { AskedOfScope } from '../contract/answer.ts'
import { AnswerStream } from '../contract/answer-stream.ts'

/** True where the deployment prefers an answer without a record to none. Calls need a gate. */
export const mayPass = ({ REFLEX_UNRECORDED }: Env, { request: { tools } }: AskedOfScope): boolean =>
  REFLEX_UNRECORDED === 'pass' && tools.length === 0

/** The answer of the deployment's model, or of the model whose key the caller sent. */
export function unrecorded(env: Env, { request, streams, behind }: AskedOfScope): ReadableStream<Uint8Array> {
  const stopping = new AbortController()
  const out = new AnswerStream((why) => stopping.abort(new Error(why)))
  const name = behind?.name ?? modelName(env)
  const used = { input_tokens: 0, output_tokens: 0 }
  const hider = deploymentHider(env)
  const work = async () => {
    out.write({ line: 'head', trace_id: null, model: name, decided_by: null })
    const model = meter(resolveModel(name, behind ? { ...env, OPENAI_COMPATIBLE_API_KEY: behind.key } : env), {
      allow: async () => ({ ok: true }),
      record: ({ input_tokens, output_tokens }) => void Object.assign(used, { input_tokens, output_tokens }),
      name,
    })
    const refuse = () => Promise.reject(new Error('no call is made while nothing is recorded'))
    const deps = { model, signal: stopping.signal, reply: () => {}, call: refuse }
    const sink = { streams, said: (text: string) => out.write({ line: 'text', text }), called: () => {} }
    const { finish } = await answerRequest(request, deps, sink)
    out.write({ line: 'end', finish, ...used })
  }
  void work()
    .catch((error: unknown) => {
      const status = modelFaultOf(error, { now: Date.now(), asked: true })?.status ?? 502
      const text = hider.text(messageOf(error))
      const message = behind ? text.replaceAll(behind.key, '***') : text
      out.write({ line: 'error', status, reason: 'model', message, retry_after_s: null })
    })
    .finally(() => out.close())
  return out.answer
}
