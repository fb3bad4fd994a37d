! Four days of an energy balance model on n bands of equal area, with x the sine of latitude:
!   C dT/dt = absorbed - (A + B T) + D d/dx ((1 - x**2) dT/dx),   C of 10 m of water
subroutine four_days(T, absorbed, A, B, D, n)
  implicit none
  integer, intent(in) :: n
  real(8), intent(inout) :: T(n)                     ! degC
  real(8), intent(in) :: absorbed(n), A(n), B(n), D  ! W m-2 and W m-2 K-1
  real(8) :: flux(0:n)
  integer :: day, i
  flux = 0d0  ! nothing crosses the poles
  do day = 1, 4
    flux(1:n - 1) = D * (1 - [(2d0 * i / n - 1, i = 1, n - 1)]**2) * (T(2:) - T(:n - 1)) * n / 2
    T = T + 86400 / 4.2d7 * (absorbed - A - B * T + (flux(1:) - flux(:n - 1)) * n / 2)
  end do
end subroutine
