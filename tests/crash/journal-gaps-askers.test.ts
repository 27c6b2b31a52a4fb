import { askers, comeToOneEnd } from '../support/journal-gaps.ts'

comeToOneEnd(askers)
