import { z } from 'zod'
import type { ArtifactKind } from '../../../contract/artifact.ts'
import { scopePattern } from '../../../contract/principal.ts'
import { accountId, amount, clientId } from './transfer.ts'

export const artifactReference = z
  .string()
  .max(200)
  .regex(/^(?:reflex|skill):[^@\s]+@[^@\s]+$/, 'an artifact is reflex:ID@VERSION or skill:ID@VERSION')

/** The parts of `reflex:ID@VERSION` or `skill:ID@VERSION`. */
export function artifactIn(reference: string): { kind: ArtifactKind; id: string; version: string } {
  const [, kind, id = '', version = ''] = /^(reflex|skill):([^@]+)@(.+)$/.exec(reference) ?? []
  return { kind: kind === 'reflex' ? 'reflex' : 'skill', id, version }
}

export const goodsKinds = ['licence', 'copy', 'ownership'] as const
export const listingSorts = ['rank', 'price', 'newest', 'agreement', 'saved', 'fires'] as const

const licenceTerms = z.strictObject({
  days: z.int().min(1).max(3650).optional().describe('The licence ends after this time.'),
  fires: z.int().min(1).max(1_000_000_000).optional().describe('It ends in a scope after this number of actions there.'),
  /** The price is then the budget that the buyer pays in advance; the rest is refunded. */
  per_decision: amount.optional().describe('Paid per certified decision saved, out of the price, which is a budget.'),
})
const MOST_SCOPES = 20

export const listingTerms = z.strictObject({
  ...licenceTerms.shape,
  most_scopes: z
    .union([z.int().min(1).max(MOST_SCOPES), z.literal('any')])
    .optional()
    .describe('Scopes that one licence may name, 1 by default. `any`: also patterns.'),
  resale: z.boolean().optional().describe('The buyer of a copy may sell copies and licences of it.'),
  royalty_percent: z.int().min(0).max(50).optional().describe('The share of each resale that goes to this seller.'),
  trial_fee: z.int().min(0).optional().describe('Paid for each trial.'),
})
export type ListingTerms = z.infer<typeof listingTerms>

export const newListing = z
  .strictObject({
    artifact: artifactReference,
    kind: z.enum(goodsKinds).describe('`licence`: to run it. `copy`: its code. `ownership`: it changes hands.'),
    price: amount,
    seller: accountId.describe('The account that owns the artifact.'),
    terms: listingTerms.optional(),
    expires_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'NewListing' })
export type NewListing = z.infer<typeof newListing>

/** Figures that the platform measured; nothing that a seller claims. Null if nothing is known. */
const provenFigures = z.object({
  scopes: z.int().describe('Scopes that run it.'),
  other_scopes: z.int().describe('Of these, the ones that its owner does not cover.'),
  event_types: z.array(z.string()).describe('Types of events on which its decisions were compared.'),
  fires: z.int().describe('Without those in shadow mode. Of a skill: its runs, in all versions.'),
  failures: z.int(),
  overruled: z.int(),
  agreement: z
    .object({
      share: z.number(),
      lower_bound: z.number(),
      compared: z.int(),
      state: z.string().describe('`proven`: by certificates in force. `compared`: no certificate. `lapsed`: its certificates lapsed.'),
    })
    .nullable()
    .describe('Agreement with the slow path, with its certified bound.'),
  tests: z.enum(['passed', 'failed']).nullable().describe('The last test of the manifest of a skill.'),
  model_calls_saved_per_1000: z.number().nullable().describe('Per 1,000 events that it saw while it acted.'),
  usd_saved_per_1000: z.number().nullable(),
})
export type ProvenFigures = z.infer<typeof provenFigures>

export const listing = z
  .object({
    listing_id: z.string(),
    artifact: z.string(),
    hash: z.string(),
    kind: z.enum(goodsKinds),
    price: z.int(),
    seller: z.string(),
    terms: listingTerms,
    description: z.string(),
    event_types: z.array(z.string()),
    tools: z.array(z.string()),
    state: z.enum(['open', 'closed', 'expired', 'sold']),
    state_reason: z.string().nullable(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Listing' })
export type Listing = z.infer<typeof listing>

export const foundListing = listing
  .extend({
    figures: provenFigures,
    rank: z.object({
      score: z.number().describe('The sum of its reasons.'),
      because: z.array(z.object({ points: z.number(), reason: z.string() })),
    }),
    measured_at: z.iso.datetime().describe('The time as of which the figures are.'),
  })
  .meta({ id: 'FoundListing' })
export type FoundListing = z.infer<typeof foundListing>

export const newOffer = z
  .strictObject({
    id: clientId(128).describe('Made by the client. It becomes the id of the deal.'),
    buyer: accountId,
    price: amount.optional().describe('Unset: the price of the listing.'),
    scopes: z.array(scopePattern).min(1).max(MOST_SCOPES).optional().describe('The scopes of a licence. Unset: the scope of the buyer.'),
    timeout_s: z.int().min(10).max(2_592_000).optional().describe('The offer expires after this time; a day by default.'),
  })
  .meta({ id: 'NewOffer' })
export type NewOffer = z.infer<typeof newOffer>
