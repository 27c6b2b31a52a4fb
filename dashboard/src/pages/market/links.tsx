import { accountLink } from '../../ui/links.tsx'
import { count } from '../../ui/numbers.ts'
import { visible } from '../../ui/text.tsx'

export const listingLink = (id: string): string => `/market?listing=${encodeURIComponent(id)}`
export const contractLink = (id: string): string => `/market?contract=${encodeURIComponent(id)}`

/** An amount of money with its unit. */
export const scrip = (amount: number): string => `${count(amount)} scrip`

export const AccountLink = ({ id }: { id: string }) => <a href={accountLink(id)}>{visible(id)}</a>
export const Path = () => <a href="/market">Market</a>
