import type { Feature } from '../../feature.ts'
import { inEachScope } from '../../engine/installed.ts'
import type { Collaborators } from '../../engine/wiring.ts'
import type { AskedOfScope } from './contract/answer.ts'
import { answerRoutes, providerRoutes } from './http/routes.ts'
import { AskedModels } from './scope/asked-models.ts'

declare module '../../env.ts' {
  interface Env {
    /** `pass`: callers may send their own key of a provider, which is used and not kept. */
    REFLEX_PROVIDER_KEYS?: string
    /** `pass`: a request without tools is answered although its scope cannot record it. */
    REFLEX_UNRECORDED?: string
  }
}

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /**
     * Answers a request to a model, JSON of AskedOfScope, by lines of JSON of AnswerLine; a request
     * that streams gets a stream.
     */
    answerModel(asked: string): Promise<ReadableStream<Uint8Array> | string>
  }
}

const askedModels = inEachScope((scope: Collaborators) => new AskedModels(scope))

/** The interfaces of model providers: an agent that exists calls its model through a scope. */
export const oneUrl = {
  name: 'one url',
  open: [providerRoutes],
  routes: () => [answerRoutes],
  inScope: askedModels,
  calls: { answerModel: (scope, asked) => askedModels(scope).answer(JSON.parse(asked) as AskedOfScope) },
} satisfies Feature
