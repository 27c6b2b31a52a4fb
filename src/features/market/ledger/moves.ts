/** Selects what accounts pay and receive by the transfers for which a condition holds. */
export const movesOf = (condition: string): string => `
  WITH moves AS (
    SELECT debit, credit, CASE WHEN kind IN ('single', 'post') THEN amount ELSE 0 END AS posted,
      CASE kind WHEN 'pending' THEN amount WHEN 'single' THEN 0
        ELSE -(SELECT opened.amount FROM transfers opened WHERE opened.id = transfers.pending_id) END AS reserved
    FROM transfers WHERE ${condition})
  SELECT debit AS account, reserved AS debits_pending, posted AS debits_posted, 0 AS credits_pending, 0 AS credits_posted FROM moves
  UNION ALL SELECT credit, 0, 0, reserved, posted FROM moves`

export const SUMS = `sum(debits_pending) AS debits_pending, sum(debits_posted) AS debits_posted,
  sum(credits_pending) AS credits_pending, sum(credits_posted) AS credits_posted`
