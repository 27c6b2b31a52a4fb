import { orderPartition, region } from '../../templates/partitions/src/agents/orders.ts'
import { reflex } from '../../src/worker.ts'

/** The deployment of the figures of a hot scope. */
const worker = reflex({ agents: [orderPartition, region] })
export default worker.handlers
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker
