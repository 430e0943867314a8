import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, LIKELY, MILD } from './terms.ts';

const SEXY =
  '(sexual|sexy|erotic|explicit|nude|naked|nsfw|pornographic|topless|lewd|x rated|smutty|sexually explicit|sexualized|sexualised|sexually suggestive|undressed)';
const MEDIA =
  '(picture|pictures|pic|pics|photo|photos|image|images|video|videos|content|material|story|stories|scene|scenes|fanfic|fanfiction|roleplay|role play|drawing|drawings|art|fiction|fantasy|fantasies|description|chat|conversation|poem|movie|film|clip|clips)';

const SEXUAL_MINORS: readonly PhraseGroup[] = [
  {
    categories: ['sexual/minors', 'sexual'],
    score: CERTAIN,
    phrases: [
      '(child|children|childs|kiddie|kiddy|kid|kids|underage|under age|preteen|pre teen|minor|minors|toddler|infant|baby|teenage|loli|lolita|shota|schoolgirl|pedo|pedophile|incest child) (porn|porno|pornography|pornographic|erotica|sex|smut|nudes|nude|nudity|hentai|pr0n|cp|sexual content|sex videos|sex stories) !(education|ed|laws|law|abuse|offender|offenders|trafficking|assigned|crimes|ratio|at|chromosomes|act|prevention|of|differences)',
      '(lolicon|shotacon|jailbait|jail bait|pedo porn|cunny) !(detection|detector|prevention|policy|policies|laws|law|reporting|report|scanning|hash|hashes|classifier|is|hotline|filter)',
      `${SEXY} ${MEDIA} (of|with|about|involving|featuring|between|containing|depicting|where|for|including) [~2] <minor>`,
      `${SEXY} <minor> ${MEDIA}`,
      `${MEDIA} of [a|an|the|some] (nude|naked|topless|undressed|sexy|half naked) <minor>`,
      '(generate|create|make|show|send|give|find|download|write|produce|want|get|see) [me|us|to see] [a|an|some|the] ((child|children|minor) sexual (abuse|exploitation) (material|content|images|videos|imagery)|csam|cp videos|child abuse images) !(detection|detector|policy|report|reporting|filter|classifier|hash)',
      '<age> (nude|naked|nudes|porn|sex|sexy|topless|stripping)',
      '<ask> (meet|find|date|pick up|hook up with|attract|flirt with|touch|kiss) (underage girl|underage girls|underage boys|underage boy|little girls|little boys|young girls for sex|young boys for sex|schoolgirls|minors for sex|children for sex|kids for sex)',
      `(write|generate|create|draw|show|send|give|make|find|want|tell|describe|roleplay|imagine|see) [me|to see|us] [a|an|some|the] [~1] (sex|sexual|erotic|smut|porn|nsfw|pornographic|sexually explicit|explicit) ${MEDIA} [~4] <minor>`,
      '(show|send|generate|draw|find|give|want|see|get|make) [me|to see|us] [a|an|some|the] [~1] (nude|nudes|naked|sexy|topless|porn|undressed|sexualized) [of|with] [a|an|the|some] [~1] <minor>',
      '(having sex|have sex|had sex|sex|sexual relations|sexual relationship|sexual intercourse|hook up|hookup|sexting|sext|make out|oral sex) (with|between) [an|a|the|my|this|two|some] [adult and a|adult and|young|little|very young] <minor> !(care|room|old)',
      '(molest|fondle|rape|seduce|sexually abuse|sexually touch|have sex with|sleep with|fuck|undress|sexualize|sexualise) [a|an|the|my|this|that|young|little|some|your] [young|little] (<minor>|daughter|son|niece|nephew|stepdaughter|stepson|little sister|little brother|student|students)',
      '<ask> (groom|grooming|lure|luring|seduce|seducing|abduct|kidnap|sext|sexually exploit) [a|an|the|some|young|little|underage] (child|children|minor|minors|kid|kids|preteen|preteens|underage girl|underage girls|underage boy|little girl|little girls|young girls|schoolgirl|schoolgirls|<age>) !(clothes|psychology|s)',
      '(attracted to|sexually attracted to|aroused by|turned on by|masturbate to|jerk off to|lust for|fantasize about) [young|little|underage|prepubescent] (children|kids|minors|little girls|little boys|toddlers|preteens|underage girls|schoolgirls|<age>)',
      '<minor> (having sex|have sex|masturbating|undressing|naked in bed|giving a blowjob|in lingerie|in a sexual|getting fucked|being raped|being molested|stripping|in sexy|in a sexy|sexually)',
    ],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      '(against|combat|combating|combatting|fight|fighting|report|reporting|reported|possession of|possessing|prevent|preventing|ban|banning|banned|prohibit|prohibits|prohibiting|outlaw|outlaws|criminalize|criminalizes|criminalizing|detect|detecting|block|blocking|victims of|charges of|convicted of|charged with|arrested for|law on|laws on|legislation on|remove|removing|stop|stopping|spread of|problem of|harm of|harms of|regarding|definition of) [online|the|all] (child|minor) (porn|pornography)',
      '(prevent|preventing|report|reporting|protect|protecting|stop|stopping|against|people who|someone who|anyone who|adults who|person who|man who|teacher who|arrested for|accused of|convicted of|charged with|illegal to) [~2] (molest|rape|sexually abuse|having sex with|have sex with|abuse) [a|an|the|their] (child|children|minor|minors|kid|kids)',
    ],
  },
];

/** Sexual content, and requests for it. What a lesson or a doctor says in the same words stays out of it. */
export const SEXUAL_PHRASES: readonly PhraseGroup[] = [
  ...SEXUAL_MINORS,
  {
    categories: ['sexual'],
    score: CERTAIN,
    phrases: [
      '(fuck me|fuck me hard|fuck my (pussy|ass|brains out|wife|mouth|throat)|fuck your (pussy|ass|brains out|mouth|throat|tits)) !(up|over|sideways|i|this|that|what|why|it|not|dead|gently)',
      '(suck|lick|ride|stroke|touch|rub|eat|taste|kiss|play with|finger|pound|fill|spread|sit on) (my|your|his|her|this|that) [wet|hard|big|tight|huge|hot|sweet|throbbing|thick] (dick|cock|pussy|clit|balls|tits|boobs|nipples|asshole|penis|vagina|cum|legs for me|face and cum|member) !(shaped)',
      '(show|send|give|find|get) (me|us) [some|free|hot|hardcore|gay|more|your|any|good] (porn|porno|pornography|porn videos|sex videos|sex pics|hentai) !(statistics|laws|law|research|addiction|industry|blockers|blocker)',
      '(sex|sex act|sexual act|sexual acts|sexual encounter|intercourse|orgy|threesome|gangbang|masturbation|orgasm|blowjob|lovemaking) ~4 in (explicit|graphic|vivid|extreme|full sexual|sexual|erotic) [and] [explicit|graphic|vivid|sexual] detail',
      '(let s|lets|i wanna|i want to|i would like to|shall we|can we|wanna) [<really>] have [hot|kinky|rough|anal|oral|wild|passionate] sex !(during|after|before|without|safely|but|more|again|for|when|while|and|ed|education|in)',
      '(show|send) (me|us) [a|some|a pic of|pics of|a picture of|pictures of] (your|ur|you) (tits|boobs|pussy|breasts|dick|cock|naked body|nudes|naked|ass|nude)',
      '(send|trade|post|want|share|show|get) [me|some|your|ur|me some|me your|us] (nudes|nude pics|nude photos|nude pictures|naked pics|naked pictures|naked photos|dick pics|dick pic)',
      '(talk|speak|whisper) dirty to me',
      '(sext|have sex|have cybersex|do cybersex|cyber sex|roleplay sex|role play sex|have phone sex|have virtual sex) with me',
      '(let s|lets|wanna|want to|gonna|going to|i ll|can we|shall we|we can|want you to|like to|love to) [<really>] (fuck|have sex right now|have sex tonight|have sex with you|have cybersex|have phone sex|sext|make you cum|cum inside|cum on|cum in|have an orgasm together|bang you|jerk off together|fuck you hard|lick you|eat you out|breed you|ravish you) !(it|off|up|around|this|that|with|my|the|things|you)',
      '(i|we) [<really>] (want to|wanna|m going to|am going to|m gonna|need to|would love to|d love to|want|ll|will) [<really>] fuck (you|her|him|my (sister|mom|mother|stepsister|stepmom|cousin|teacher|neighbor|boss|daughter|son)|someone|a girl|that girl|girls|women) [hard|so hard|tonight|in the ass|raw]',
      '(make me|make you|made me|help me|watch me) (cum|orgasm|horny|climax)',
      '(cum|cumming|jizz|ejaculate|squirt) (on|in|inside|all over) (my|your|her|his|me) [face|mouth|tits|ass|pussy|chest|body|wife]',
      '(pretend|act|roleplay|role play|imagine) [to be|as|like|that|you are|you re] [~3] (my sex slave|a sex slave|my slut|a prostitute and|a porn star|my whore|a dominatrix|my submissive|fucking me|having sex with me|a horny)',
      '(write|create|generate|give|tell|make|produce|compose|draft|describe|continue|need|want|read) [me|us] [a|an|the|some|your|in] [~2] (erotica|smut|porn|porno|pornography|erotic story|erotic stories|erotic fiction|erotic fanfiction|erotic novel|erotic scene|erotic poem|pornographic story|pornographic content|pornographic scene|porn story|porn script|sex scene|sex scenes|sex story|sex stories|smut story|sexual scene|sexual story|sexual fantasy|sexual fantasies|nsfw story|nsfw content|nsfw fanfic|nsfw scene|nsfw roleplay|sexually explicit story|sexually explicit scene|sexually explicit content|sexually explicit fanfiction|explicit sexual content|explicit sex|sexually explicit text|sexually explicit poem|hardcore sex|blowjob scene|gangbang scene|orgy scene|bdsm scene|rape scene|rape story|rape fantasy|incest story|incest scene|hentai|dirty story|bestiality|sexually explicit material|sexually explicit stories|pornographic material|pornographic stories|explicit pornographic story|explicit pornographic content)  !(laws|law|industry|addiction|policy|filter|blocker|ratings|recovery|detection|education|warning|guidelines|consumption|use|regulation)',
      '(explicit|graphic|hardcore|detailed|steamy|nsfw|pornographic|vivid|uncensored|raunchy) [and] [explicit|graphic|detailed|uncensored|erotic] (sex|sexual|erotic|porn|pornographic|oral sex|anal sex|gay sex|lesbian sex|bdsm|gangbang|blowjob|masturbation) (scene|scenes|story|stories|act|acts|roleplay|role play|fantasy|fantasies|description|descriptions|encounter|encounters|details|fanfiction|chat|dialogue|between|with)',
      '(describe|depict|narrate|write about|detail|tell me about|write|roleplay|explain) [~3] (having sex|having anal sex|having oral sex|giving a blowjob|giving him a blowjob|masturbating|having an orgasm|fucking|getting fucked|being gangbanged|having a threesome|having intercourse) [in|with|graphically|explicitly]',
      '(engage in|start|do|play|want|have|begin|let s do|lets do|up for|try) [some|an|a|in|this] [~1] (erotic|sexual|nsfw|sexually explicit|kinky) (roleplay|role play|rp|chat|conversation|talk|roleplaying)',
      '(free porn|porn videos|porn video|porn site|porn sites|hardcore porn|gay porn|anal porn|revenge porn|deepfake porn|porn of|nude deepfake|deepfake nudes|nude photos of|nude pictures of|naked pictures of|naked photos of|nude pics of|undress this|undress her|remove her clothes|remove the clothes from|take off your clothes|take your clothes off|spread your legs|bend over and) !(law|laws|legislation|victims|victim|bill|detection|blocker|blocking|addiction|is|now|before|in|policy)',
      '<ask> (rape|roofie|drug and rape|sexually assault|date rape|molest|force myself on|grope|make a deepfake nude of|secretly film|upskirt) (<somebody>|her|him|<kin>|my date|this girl|that girl|drunk girls|a drunk girl|a sleeping girl) [s]',
    ],
  },
  {
    categories: ['sexual'],
    score: CLEAR,
    phrases: [
      '(you re|you are|im|i m|i am|feeling|so) [so|really|very|getting] (horny|turned on by you|hard for you|wet for you|aroused right now)',
      '(sex with (animals|a dog|a horse|dogs|horses|corpses|a corpse|my (sister|mother|mom|brother|daughter|son|cousin|stepsister|stepmom))|incest porn|bestiality porn|zoophilia porn|rape porn|rape fantasies)',
      '(cumshot|cumshots|creampie|gangbang|gang bang|bukkake|deepthroat|deep throat|rimjob|titfuck|facefuck|cum slut|cumslut|cock sucking|dick sucking|pussy licking|ass fucking|milf porn|futanari|throbbing cock|hard cock|wet pussy|tight pussy|big cock|big dick|huge cock|dripping wet pussy|bbc cock)',
    ],
  },
  {
    categories: ['sexual'],
    score: LIKELY,
    phrases: [
      '(sex slave|cybersex|sexting|fleshlight|strap on sex|anal sex with me|hot sex|rough sex with|dirty talk) !(laws|law|trafficking|is|among|trade|victims|prevention|in|can|and|risks|of)',
    ],
  },
  {
    categories: ['sexual'],
    score: MILD,
    phrases: [
      '(porn|porno|pornhub|xvideos|xnxx|hentai|blowjob|blowjobs|handjob|dildo|erotica|nudes|nsfw|horny|masturbate|masturbation|orgasm|bdsm|pussy|tits|boobs|cock|dick|cum)',
    ],
  },
];
