import type { Feature } from '../../feature.ts'
import { keyRoutes, receiptRoutes } from './http/routes.ts'
import { keyProblem } from './keys.ts'
import type { OfReceipt } from './contract/receipt.ts'
import { linkLog, receiptIn, signedRecordingOf } from './scope/receipt.ts'

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /** The scope's part of a receipt, as lines; null if its log does not name the trace. */
    receipt(of: OfReceipt): Promise<ReadableStream<Uint8Array> | null>
    /** The scope's part of an exported trace with the way to signed heads, as lines. */
    signedRecording(trace_id: string): Promise<ReadableStream<Uint8Array> | null>
  }
}

/** Signed receipts of traces, which others check without this deployment. */
export const receipts = {
  name: 'receipts',
  inScope: linkLog,
  calls: {
    receipt: async (scope, of) => receiptIn(scope, of),
    signedRecording: async (scope, trace_id) => signedRecordingOf(scope, trace_id),
  },
  problem: keyProblem,
  open: [keyRoutes],
  routes: () => [receiptRoutes],
} satisfies Feature
