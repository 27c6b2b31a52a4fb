import type { Feature } from '../feature.ts'
import { alerts } from './alerts/index.ts'
import { approvals } from './approvals/index.ts'
import { archive } from './archive/index.ts'
import { audit } from './audit/index.ts'
import { controlPlane } from './control-plane/index.ts'
import { deadLetters } from './dead-letters/index.ts'
import { decisions } from './decisions/index.ts'
import { hooks } from './hooks/index.ts'
import { learning } from './learning/index.ts'
import { market } from './market/index.ts'
import { notices } from './notices/index.ts'
import { oneUrl } from './one-url/index.ts'
import { proof } from './proof/index.ts'
import { protocols } from './protocols/index.ts'
import { receipts } from './receipts/index.ts'
import { replay } from './replay/index.ts'
import { statistics } from './statistics/index.ts'
import { traces } from './traces/index.ts'

/** The features of a deployment, in the order in which they act, with the types of their routes. */
const listed = [
  notices,
  alerts,
  archive,
  approvals,
  statistics,
  market,
  learning,
  proof,
  decisions,
  oneUrl,
  controlPlane,
  hooks,
  protocols,
  replay,
  receipts,
  traces,
  audit,
  deadLetters,
] as const satisfies readonly Feature[]

/** `reflex` takes all by default. */
export const features: readonly Feature[] = listed

type RoutesOf<One> =
  | (One extends { routes: (...given: never) => readonly (infer Routes)[] } ? Routes : never)
  | (One extends { open: readonly (infer Routes)[] } ? Routes : never)
/** Their routes, for typed clients. */
export type FeaturesApp = RoutesOf<(typeof listed)[number]>
