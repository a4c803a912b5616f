"""The codes of the languages of mBART, which no file lists in all checkpoints."""

#: The languages of mBART, and the languages that mBART-50 adds, in the order of their ids.
_MBART = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR "
    "lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
).split()
_MBART_50 = (
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL "
    "ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
).split()

#: 25 for mBART, or 50 for mBART-50 -> the codes.
MBART_LANGUAGES = {25: tuple(_MBART), 50: (*_MBART, *_MBART_50)}
