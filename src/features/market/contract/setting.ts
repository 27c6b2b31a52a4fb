import { z } from 'zod'
import { setting } from '../../../contract/setting.ts'

/** Limits on what an account may spend, which settings of its scope set. All in scrip. */
export const spendingLimits = z.strictObject({
  per_transaction: z.int().min(0).nullable(),
  per_hour: z.int().min(0).nullable(),
  per_day: z.int().min(0).nullable(),
  counterparties: z.array(z.string().min(1).max(256)).max(100).nullable().describe('Patterns of account ids; null: all.'),
})
const { per_transaction, per_hour, per_day, counterparties } = spendingLimits.shape
const most = Number.MAX_SAFE_INTEGER

const fields = {
  opening_grant: z.int().min(0).max(most).describe('Scrip that is minted for the scope, once. Only an admin of all scopes may set it.'),
  per_transaction: per_transaction.describe('Maximum amount of a transfer of this scope. null: no limit.'),
  per_hour: per_hour.describe('Maximum amount that this scope may spend within an hour. null: no limit.'),
  per_day: per_day.describe('Maximum amount that this scope may spend within a day. null: no limit.'),
  counterparties: counterparties.describe('Patterns of the accounts that this scope may pay. null: all.'),
  without_approval: z
    .int()
    .min(0)
    .max(most)
    .describe('The agent and its reflexes may spend this much at a time without a person; more needs an approval.'),
  least_price: z
    .int()
    .min(0)
    .max(most)
    .nullable()
    .describe(
      'The agent and its reflexes may list, sell and serve what `services` names at this price or more without a person. null: each time needs an approval.',
    ),
  services: z
    .array(z.string().min(1).max(256))
    .max(100)
    .describe('Patterns of `reflex:ID` and `skill:ID` that the agent may give away from `least_price` on without a person.'),
}

const marketSettings = z.strictObject(fields)
export type MarketSettings = z.infer<typeof marketSettings>

export const marketSetting = setting(
  marketSettings,
  'What this scope may spend and sell in the market. Unset: its agent gets no tools of the market, and no events of it. A patch changes only the fields it ' +
    'contains. See docs/market.md.',
  {
    opening_grant: 1000,
    per_transaction: 100,
    per_hour: 500,
    per_day: 1000,
    counterparties: ['scope:team-*'],
    without_approval: 10,
    least_price: 5,
    services: ['reflex:greet'],
  },
)

/** A patch changes each field separately. */
export const marketPatch = z.strictObject(fields).partial()
type MarketPatch = z.infer<typeof marketPatch>

export const defaultMarket: MarketSettings = {
  opening_grant: 0,
  per_transaction: null,
  per_hour: null,
  per_day: null,
  counterparties: null,
  without_approval: 0,
  least_price: null,
  services: [],
}

type Layer = { market?: MarketPatch | null | undefined }

/** null removes all of it: the scope's agent takes no part in the market. */
export function mergeMarket({ market: before }: Layer, { market: patch }: Layer): Layer {
  if (patch === undefined) return { market: before ?? undefined }
  return { market: patch === null ? undefined : { ...before, ...patch } }
}

/** Merges the layers, later ones first. */
export function effectiveMarket(layers: readonly Layer[]): MarketSettings | undefined {
  const { market } = layers.reduce<Layer>(mergeMarket, {})
  return market ? marketSettings.parse({ ...defaultMarket, ...market }) : undefined
}
