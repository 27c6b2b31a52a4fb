import { deduplicator } from './deduplicator.ts'
import type { ReflexTemplate } from './define-template.ts'
import { genesisTradingReflex } from './genesis-trading-reflex.ts'
import { keywordRouter } from './keyword-router.ts'
import { rateLimiter } from './rate-limiter.ts'
import { smallPurchases } from './small-purchases.ts'
import { thresholdInWindow } from './threshold-in-window.ts'

export const templates: readonly ReflexTemplate[] = [
  thresholdInWindow,
  rateLimiter,
  deduplicator,
  keywordRouter,
  smallPurchases,
  genesisTradingReflex,
]
