import { z } from 'zod'
import { alertNames } from '../../contract/alert.ts'

/** A condition of the deployment that the sweep found. */
export const keptAlert = z
  .object({
    id: z.string().describe('The condition and its period, by which it is kept once.'),
    at: z.iso.datetime().describe('When the sweep found it first.'),
    name: z.enum(alertNames),
    summary: z.string(),
    details: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'KeptAlert' })
export type KeptAlert = z.infer<typeof keptAlert>
