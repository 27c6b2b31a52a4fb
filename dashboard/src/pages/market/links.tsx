import { accountLink } from '../../ui/links.tsx'
import { visible } from '../../ui/text.tsx'

export const listingLink = (id: string): string => `/market?listing=${encodeURIComponent(id)}`
export const contractLink = (id: string): string => `/market?contract=${encodeURIComponent(id)}`

export const AccountLink = ({ id }: { id: string }) => <a href={accountLink(id)}>{visible(id)}</a>
export const Path = () => <a href="/market">Market</a>
